"""Reading the changes of a table, against comparing both snapshots in plain Spark.

In ``.venv-spark``: ``python -m benchmarks.table_changes [--rows 10000000] [--kind iceberg-cow]``.
1 % of the rows change, in some of the files, as in a table that is loaded by day.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.contract.table_versions import TableVersion
from tests.engine.changed_tables import KINDS, NAME, ChangedTable
from tests.support.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITIONS = 50


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kind", choices=[*KINDS], default="iceberg-cow")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        local_session(Path(folder, "spark"), shuffle_partitions=8) as spark,
    ):
        table = ChangedTable(spark, Path(folder), asked.kind)
        table.make()
        table.do(
            "INSERT INTO db.t SELECT id, CAST(id * 31 AS STRING), id / 7, NULL, "
            f"CAST(id DIV {asked.rows // _PARTITIONS} AS INT) FROM range({asked.rows})"
        )
        before = table.ids()[-1]
        # One of fifty partitions, half of whose rows change.
        table.do("UPDATE db.t SET v = 'new' WHERE p = 7 AND id % 2 = 0")
        after = table.ids()[-1]

        def state(snapshot: int) -> DataFrame:
            metadata = table.connector.metadata
            then = metadata.load_version(NAME, TableVersion(snapshot=snapshot), None)
            files = metadata.plan_files(then)
            rows = table.connector.scan.read(spark, then, files, then.column_names)
            return rows.select("id", "v", "f", "p")

        def compared() -> int:
            old, new = state(before), state(after)
            return new.exceptAll(old).count() + old.exceptAll(new).count()

        def told() -> int:
            return table.chosen(before).frame(spark, table.connector).count()

        plain, rows = _timed(compared)
        ours, found = _timed(told)
        print(f"{asked.kind}, {asked.rows:,} rows: {rows:,} and {found:,} changes")
        print(f"both snapshots in Spark {plain:.1f} s, changes {ours:.1f} s: {plain / ours:.1f} x")


def _timed(action: Callable[[], int]) -> tuple[float, int]:
    action()
    began = time.perf_counter()
    found = action()
    return time.perf_counter() - began, found


if __name__ == "__main__":
    main()
