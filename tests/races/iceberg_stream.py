"""Writes beside a stream of upserts, which deletes by value: all commit, none undoes another.

``.venv-spark/bin/python -m tests.races.iceberg_stream [--minutes N] [--pause S] [--seconds S]``.
The stream upserts a row every ``--pause`` seconds. Writes of ``--seconds`` seconds update a row of
another range and insert a new one. At the end the rows are those of both, replayed in order.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException

from spark_jobs.errors import CommitError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, ids_in
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.iceberg.test_commits import file_with, rows
from tests.connectors.iceberg.test_equality_deletes import delete_by_value, live_ids

_SCHEMA: Final = pa.schema([("id", pa.int64()), ("s", pa.string())])
# The stream's ids are below, those of the writes from here on.
_WRITES: Final = 1000
_STREAMED: Final = 50


def race(folder: Path, minutes: float, pause: float, seconds: float) -> tuple[int, int, int]:
    """The numbers of upserts, of writes and of their conflicts; raises if rows are wrong."""
    catalog = PlainCatalog(folder)
    catalog.create(_SCHEMA, {"format-version": "2"}, rows(*range(_STREAMED)))
    catalog.library().load_table(("db", "t")).append(rows(*range(_WRITES, _WRITES + 100)))
    ends, upserts = time.monotonic() + minutes * 60, [0]

    def stream() -> None:
        connector = catalog.open()
        while time.monotonic() < ends:
            key = upserts[0] % _STREAMED
            _delete(connector, key)
            catalog.library().load_table(("db", "t")).append(rows(key))
            upserts[0] += 1
            time.sleep(pause)

    thread = threading.Thread(target=stream)
    thread.start()
    written, conflicts = 0, 0
    while time.monotonic() < ends:
        connector = catalog.open()
        write = DirectWrite(connector, isolation="snapshot", read_set=ids_in(_WRITES, 10**9))
        file = file_with(write, _WRITES + 1)
        write.update(file, 1, f"changed {written}")
        write.insert({"id": 10 * _WRITES + written, "s": "new"})
        time.sleep(seconds)
        try:
            write.publish()
            written += 1
        except CommitError:
            write.abort()
            conflicts += 1
    thread.join()
    found = live_ids(catalog.open())
    kept = [*range(_STREAMED), *range(_WRITES, _WRITES + 100)]
    wanted = [*kept, *range(10 * _WRITES, 10 * _WRITES + written)]
    if found != wanted:
        raise AssertionError(f"{NAME} has other rows than were written: {found}")
    return upserts[0], written, conflicts


def _delete(connector: Connector, key: int) -> None:
    """Commit a deletion, again if a write was faster."""
    while True:
        with suppress(CommitFailedException):
            delete_by_value(connector, [{"id": key}], "id", measured=True)
            return


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--pause", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        upserts, written, conflicts = race(
            Path(folder), parsed.minutes, parsed.pause, parsed.seconds
        )
    print(  # noqa: T201
        f"{upserts} upserts, {written} writes beside them, {conflicts} conflicts: all rows right"
    )


if __name__ == "__main__":
    main()
