"""What hook and sensors read of a large table, in the Airflow side's own code.

``.venv-spark/bin/python -m benchmarks.metadata``: 20,000 files in 1,000 partitions, and 1,000
snapshots. The table is made with pypaimon; what is measured uses neither it nor Spark.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.metadata.table_view import retained_snapshots
from tests.support.many_files import FIRST_DAY, NAME, create_table, fill_table

DAYS, FILES_PER_DAY, SNAPSHOTS, ROUNDS = 1000, 20, 1000, 5


def main() -> None:
    """Print the median milliseconds of each read."""
    with tempfile.TemporaryDirectory() as folder:
        fill_table(create_table(Path(folder)), DAYS, FILES_PER_DAY)
        _add_snapshots(Path(folder) / f"{NAME.database}.db" / NAME.table / "snapshot")

        def table() -> PaimonTable:
            return PaimonTable.find(folder, NAME, {})

        _measure("latest snapshot", lambda: table().latest())
        _measure("one partition", lambda: table().partitions({"day": FIRST_DAY}))
        _measure("all partitions", lambda: table().partitions())
        _measure("row count", lambda: table().row_count())
        _measure("1,000 snapshots", lambda: retained_snapshots(table(), None))


def _add_snapshots(folder: Path) -> None:
    first = json.loads((folder / "snapshot-1").read_text())
    for number in range(2, SNAPSHOTS + 1):
        (folder / f"snapshot-{number}").write_text(json.dumps({**first, "id": number}))
    (folder / "LATEST").write_text(str(SNAPSHOTS))


def _measure(name: str, read: Callable[[], object]) -> None:
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        read()
        seconds.append(time.perf_counter() - started)
    print(f"{name:<16} {statistics.median(seconds) * 1000:8.1f} ms")


if __name__ == "__main__":
    main()
