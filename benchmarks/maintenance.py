"""Table care on a large table: expire 900 of 1,000 snapshots of a table of 20,000 files.

``.venv-spark/bin/python -m benchmarks.maintenance``: each snapshot replaces a file. Prints seconds,
the peak memory of the process and, with ``--store s3`` (an S3 server on loopback, behind a proxy
that counts), the requests. No Spark.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import planning
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi import rows
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.support.gateway import gateway_program, serving
from tests.support.paimon_tables import change_rows, store
from tests.support.proxy import proxy_before
from tests.support.stores import ObjectStore

_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
# Commits for which one plan of the table serves.
_PLANNED = 50


def build(warehouse: Path, snapshots: int) -> None:
    """The table: 20,000 files in 1,000 partitions; each snapshot replaces one of them.

    Goes on where it was interrupted.
    """
    if not (warehouse / "bench.db").exists():
        planning.fill_table(planning.create_table(warehouse), days=1000, files_per_day=20)
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    first = connector.metadata.load_table(planning.NAME).snapshot_id or 1
    for number in range(first, snapshots):
        if number == first or number % _PLANNED == 0:
            table = connector.metadata.load_table(planning.NAME)
            planned = connector.metadata.plan_files(table)
            files = [each for each in planned if each.path.endswith("-0.parquet")][:_PLANNED]
        file = files[number % _PLANNED]
        operation = Operation(f"op-{number}", "digest", {})
        write = MergeWrite(operation, (file,), ((),), (), 1 << 27, read_set=lambda _: ())
        handle = connector.writes.begin_merge(table, write)
        removed = change_rows(table, rows.DELETE, [{"file": file.ordinal, "position": 0}])
        fragments = store(handle, removed)
        connector.writes.finish_merge(table, handle, fragments, {})
        connector.writes.release_guard(table, operation.operation_id)


def _expire(
    catalog: CatalogSpec, credentials: Mapping[str, str], retain: int, results: Any
) -> None:
    connector = open_connector(catalog, credentials)
    assert connector.maintenance is not None
    spec = ExpireSnapshotsSpec(retain_min=retain, older_than="0 s", max_deletes=1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    report = connector.maintenance.expire_snapshots(planning.NAME, spec, dry_run=False)
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put({"seconds": seconds, "MB": (before / 1024, peak / 1024), **asdict(report)})


def measured(catalog: CatalogSpec, credentials: Mapping[str, str], retain: int) -> dict[str, Any]:
    """Expire in a process of its own; memory in MB before and at its peak."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_expire, args=(catalog, credentials, retain, results))
    process.start()
    answer: dict[str, Any] = results.get(timeout=900)
    process.join()
    return answer


@contextmanager
def _on_s3(warehouse: Path) -> Iterator[tuple[CatalogSpec, Mapping[str, str], dict[str, Any]]]:
    """The same folder behind a server; how many requests of each method it got."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = ObjectStore("gateway", "")
        with (
            serving(gateway_program(), folder, key.access_key, key.secret_key) as endpoint,
            proxy_before(endpoint) as proxy,
        ):
            (folder / "data" / "bench").symlink_to(warehouse.parent)
            server = ObjectStore("gateway", proxy.endpoint)
            plans = {method: proxy.add(method, "", "503", times=0) for method in _METHODS}
            yield server.catalog(f"s3://bench/{warehouse.name}"), server.credentials, plans


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["local", "s3"], default="local")
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--retain", type=int, default=100)
    parser.add_argument("--table", type=Path, help="where the table is, or is built, and stays")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        warehouse = Path(name) / "warehouse"
        warehouse.mkdir()
        source = chosen.table or warehouse
        source.mkdir(parents=True, exist_ok=True)
        build(source, chosen.snapshots)
        if chosen.table is not None:
            shutil.copytree(source, warehouse, dirs_exist_ok=True)
        if chosen.store == "local":
            answer = measured(CatalogSpec("paimon", str(warehouse)), {}, chosen.retain)
        else:
            with _on_s3(warehouse) as (catalog, credentials, plans):
                answer = measured(catalog, credentials, chosen.retain)
                answer["requests"] = {method: plan.seen for method, plan in plans.items()}
    sys.stdout.write(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()
