"""Merge-on-read of one bucket by this project's reader and by pypaimon's.

``python -m benchmarks.merge_on_read [--rows N] [--runs N]``, in ``.venv-spark``. The bucket has N
rows of nine columns on the highest level, under ten files of level 0 with 1 % of the keys each.
This project reads it in a Spark task, as a statement does, and in this process; pypaimon reads it
in this process, once. Prints the medians, the ratios, the peak memory of Python workers, and
whether all have the same rows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession

from benchmarks import keyed_tables, lineitem
from benchmarks.comparison import ROOT, session
from benchmarks.memory import PeakMemory
from spark_jobs.connectors.paimon.read.scan import PaimonScan
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName

TABLE = TableName("bench", "one_bucket")
COLUMNS = (
    "id",
    "partkey",
    "suppkey",
    "quantity",
    "price",
    "returnflag",
    "shipdate",
    "shipmode",
    "comment",
)
LEVEL_0_FILES = 10

_CHANGED = """
SELECT * REPLACE (price + 1 AS price, 'upd {number} ' || id AS comment)
FROM part WHERE hash(id + 1000 * {number}) % 100 = 0
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bench:
    """A table of ``rows`` rows, prepared below ``.bench``."""

    spark: SparkSession
    rows: int

    @property
    def warehouse(self) -> Path:
        """Where the table is."""
        return ROOT / f"one-bucket-{self.rows}"

    def prepare(self) -> None:
        """Write the table unless an earlier call did."""
        if self.warehouse.exists():
            return
        building = ROOT / f"building-{uuid.uuid4().hex}"
        schema = next(self._parts()).schema
        keyed_tables.create(building, TABLE, schema, {"bucket": "1"})
        keyed_tables.fill(self.spark, building, TABLE, self._parts())
        for number in range(LEVEL_0_FILES):
            query = _CHANGED.format(number=number)
            changed = [duckdb.sql(query).to_arrow_table() for part in self._parts()]
            keyed_tables.upsert(building, TABLE, pa.concat_tables(changed).cast(schema))
        building.rename(self.warehouse)

    def frame(self) -> DataFrame:
        """The rows, read in Spark tasks."""
        connector = open_connector(CatalogSpec("paimon", str(self.warehouse)), {})
        table = connector.metadata.load_table(TABLE)
        files = connector.metadata.plan_files(table)
        return PaimonScan(pafs.LocalFileSystem()).read(self.spark, table, files, COLUMNS)

    def in_tasks(self) -> None:
        """Read all rows in Spark tasks, and discard them in the JVM."""
        self.frame().write.format("noop").mode("overwrite").save()

    def in_process(self) -> pa.Table:
        """Read all rows in this process with the same reader."""
        connector = open_connector(CatalogSpec("paimon", str(self.warehouse)), {})
        table = connector.metadata.load_table(TABLE)
        files = connector.metadata.plan_files(table)
        rows = PaimonScan(pafs.LocalFileSystem()).arrow_rows(self.spark, table, files, COLUMNS)
        numbers = pa.record_batch({"id": pa.array(range(len(rows.files)), pa.int64())})
        names = [*COLUMNS, "row_id"]
        return pa.Table.from_batches(rows.function([numbers])).rename_columns(names)

    def in_parquet(self) -> Path:
        """The rows as Spark sees them, in a new folder of parquet files."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        self.frame().select(*COLUMNS).write.parquet(str(out))
        return out

    def _parts(self) -> Iterator[pa.Table]:
        for part in lineitem.target_files(self.rows):
            yield part.select(COLUMNS)


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """The seconds that ``action`` takes, and its result."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def measure(bench: Bench, runs: int) -> None:
    """Compare the readers; the first round of this project's warms up."""
    in_tasks, in_process, peak = [], [], 0
    for number in range(runs + 1):
        with PeakMemory() as memory:
            task_seconds, _ = timed(bench.in_tasks)
        process_seconds, ours = timed(bench.in_process)
        peak = max(peak, memory.largest_worker)
        print(
            f"run {number}{' (warm-up)' if number == 0 else ''}: tasks {task_seconds:.2f} s, "
            f"one process {process_seconds:.2f} s, "
            f"largest Python worker {memory.largest_worker / 2**20:.0f} MiB",
            flush=True,
        )
        if number:
            in_tasks.append(task_seconds)
            in_process.append(process_seconds)
    found = keyed_tables.fingerprint(ours, COLUMNS)
    del ours
    seconds, theirs = timed(lambda: keyed_tables.read_by_pypaimon(bench.warehouse, TABLE))
    out = bench.in_parquet()
    expected = keyed_tables.fingerprint(theirs, COLUMNS)
    in_spark = keyed_tables.fingerprint(f"FROM read_parquet('{out}/*.parquet')", COLUMNS)
    same = found == expected == in_spark
    shutil.rmtree(out)
    if not same:
        raise SystemExit("the readers have different rows")
    print(
        f"{found[0]} rows: pypaimon {seconds:.1f} s, "
        f"tasks {statistics.median(in_tasks):.2f} s, "
        f"ratio {seconds / statistics.median(in_tasks):.1f}, "
        f"one process {statistics.median(in_process):.2f} s, "
        f"ratio {seconds / statistics.median(in_process):.1f}, "
        f"largest Python worker {peak / 2**20:.0f} MiB, same rows: yes"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows)
    bench.prepare()
    measure(bench, parsed.runs)


if __name__ == "__main__":
    main()
