"""``make test-races MINUTES=… [STORE=local|s3|rest|hdfs] [PUBLISH=…] [SEED=…] [DAYS=10]``.

``KEY=1``: all writers on one partition of a table with a primary key, in turn with one fixed bucket
and with dynamic ones; a checker looks at its files and indexes afterwards. ``COMPACT=1``: a
compactor beside two writers and one of Java's (local files; there is none with dynamic buckets, nor
where readers would not see what it writes). ``PUBLISH``: ``own``, or
``pypaimon`` or ``check-then-write``, whose losses the checker must find. ``DAYS=10``: the clocks of
the processes are right, ten days ahead or ten days behind, and two of them take care of the table.
``DISTURB=1``: one more rolls it back, and drops it and makes it anew, while the others are at work.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.contract.request import CatalogSpec
from tests.judge.hdfs_server import hdfs_server, hdfs_toolchain
from tests.judge.rest_server import rest_catalog, rest_toolchain
from tests.races.checker import Report
from tests.races.race import Race
from tests.races.statements import PARTITIONS
from tests.races.writer import UNSAFE
from tests.support import append_checker, keyed_checker
from tests.support.gateway import gateway_program, serving
from tests.support.stores import ObjectStore

# A table gets slower to check as its snapshots grow in number: long races are several ones.
_MOST_DAYS_OF_S3 = 0.0101
_LONGEST_SECONDS = 150.0


@contextmanager
def _place(store: str) -> Iterator[tuple[CatalogSpec, dict[str, str], Path]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if store == "local":
            (folder / "warehouse").mkdir()
            yield CatalogSpec("paimon", str(folder / "warehouse")), {}, folder
            return
        if store == "rest":
            with rest_catalog(rest_toolchain()) as catalog:
                yield catalog.spec(), catalog.credentials, folder
            return
        if store == "hdfs":
            with hdfs_server(hdfs_toolchain()) as server:
                yield server.new_catalog(), {}, folder
            return
        key = ObjectStore("gateway", "")
        with serving(gateway_program(), folder, key.access_key, key.secret_key) as endpoint:
            server = ObjectStore("gateway", endpoint)
            yield server.new_catalog(), server.credentials, folder


def main() -> int:
    """Race as long as asked; 1 when anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--store", choices=["local", "s3", "rest", "hdfs"], default="local")
    parser.add_argument("--writers", type=int)
    parser.add_argument("--publish", choices=["own", *UNSAFE], default="own")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--key", action="store_true", help="a table with a primary key")
    parser.add_argument("--compact", action="store_true", help="a compactor and a writer of Java's")
    parser.add_argument("--days", type=float, default=0, help="how wrong the clocks are")
    parser.add_argument("--disturb", action="store_true", help="rollbacks and new tables")
    chosen = parser.parse_args()
    if chosen.compact and (chosen.publish != "own" or chosen.store != "local"):
        parser.error("COMPACT=1 is for local files and PUBLISH=own")
    if chosen.publish != "own" and chosen.store != "local":
        parser.error(f"PUBLISH={chosen.publish} is for local files: leave out STORE={chosen.store}")
    if chosen.disturb and chosen.store == "rest":
        parser.error("DISTURB=1 is not for a REST catalog: it rolls no table back")
    if chosen.days > _MOST_DAYS_OF_S3 and chosen.store == "s3":
        parser.error("S3 takes no request of a clock that is wrong by 15 minutes: DAYS=0.01")
    left, problems, number = chosen.minutes * 60, 0, 0
    while left > 0:
        seconds = min(left, _LONGEST_SECONDS)
        with _place(chosen.store) as (catalog, credentials, folder):
            marks, dynamic = number % 2 == 1, chosen.key and number % 4 > 1
            race = Race(
                catalog,
                folder,
                credentials,
                chosen.writers or (2 if chosen.compact else 4),
                marks=marks,
                publish=chosen.publish,
                seed=chosen.seed + number,
                has_key=chosen.key,
                dynamic=dynamic,
                partitions=1 if chosen.key else PARTITIONS,
                compacts=chosen.compact,
                java=chosen.compact and not (chosen.key and (marks or dynamic)),
                days=chosen.days,
                disturbed=chosen.disturb,
            )
            report = race.run(seconds)
            if chosen.store == "local":
                checker = keyed_checker if chosen.key else append_checker
                table = Path(catalog.warehouse) / "shop.db" / "orders"
                report.problems += checker.problems_of(table)
        _print(race, report, seconds)
        problems += len(report.problems)
        left, number = left - seconds, number + 1
    return int(problems > 0)


def _print(race: Race, report: Report, seconds: float) -> None:
    kind = "deletion vectors" if race.marks else "copy-on-write"
    if race.has_key:
        kind = "rewritten sections" if race.marks else "appended records"
        kind += ", dynamic buckets" if race.dynamic else ", one bucket"
    others = ", a compactor" * race.compacts + ", a writer of Java's" * race.java
    others += ", rollbacks and new tables" * race.disturbed
    others += f", clocks that differ by {race.days:g} days" * bool(race.days)
    sys.stdout.write(f"seed {race.seed}, {seconds:.0f} s, {race.writers} writers{others}, {kind}, ")
    sys.stdout.write(f"publish: {race.publish}\n")
    sys.stdout.write(f"{report}\n\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
