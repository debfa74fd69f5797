"""MERGE into a table with a primary key against a plain Spark plan, alternating in one process.

``python -m benchmarks.keyed_merge [--table append|rewrite] [--rows N] [--changes N] [--runs N]``,
in ``.venv-spark``. The table has eight buckets with files on the highest level, under one file of
level 0 each with 1 % of the keys. ``append``: changes become records of level 0 (``deduplicate``).
``rewrite``: sections are rewritten (``partial-update``). The plain plan takes the newest record of
each key by a window, joins the source, and overwrites a folder of parquet files; it commits
nothing. Prints what ``benchmarks.merge`` prints.
"""

from __future__ import annotations

import argparse
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import keyed_tables, lineitem, plain_spark
from benchmarks.comparison import ROOT, Comparison, copy_of, session, timed
from spark_jobs.contract.request import FileSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    InsertAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
)

TABLE = TableName("bench", "lineitem")
BUCKETS = 8
OPTIONS = {"append": "deduplicate", "rewrite": "partial-update"}
COLUMNS = [name for name, _ in lineitem.COLUMNS]
STATEMENT = MergeSpec(
    "s",
    "t.id = s.id",
    (
        MergeCase(
            "matched",
            UpdateAction((Assignment("price", "s.price"), Assignment("comment", "s.comment"))),
        ),
        MergeCase(
            "not_matched",
            InsertAction(
                values=("s.id", "s.price", "s.comment"), columns=("id", "price", "comment")
            ),
        ),
    ),
    "t",
    "s",
)

_OLDER_CHANGES = """
SELECT * REPLACE (tax + 1 AS tax, 'older ' || id AS comment) FROM part WHERE hash(id) % 100 = 0
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """One size of table and source, prepared below ``.bench``; ``kind`` is one of ``OPTIONS``."""

    spark: SparkSession
    rows: int
    changes: int
    kind: str

    @property
    def master(self) -> Path:
        """The warehouse that every run starts from."""
        return ROOT / f"keyed-{self.kind}-{self.rows}"

    @property
    def source(self) -> Path:
        """The parquet file of changes."""
        return ROOT / f"changes-{self.rows}-{self.changes}.parquet"

    def prepare(self) -> None:
        """Write table and source unless an earlier call did."""
        ROOT.mkdir(exist_ok=True)
        if not self.source.exists():
            lineitem.write_changes(self.source, self.rows, self.changes)
        if self.master.exists():
            return
        building = ROOT / f"building-{uuid.uuid4().hex}"
        schema = next(lineitem.target_files(self.rows)).schema
        options = {"bucket": str(BUCKETS), "merge-engine": OPTIONS[self.kind]}
        keyed_tables.create(building, TABLE, schema, options)
        keyed_tables.fill(self.spark, building, TABLE, lineitem.target_files(self.rows))
        older = [_older_changes(part) for part in lineitem.target_files(self.rows)]
        keyed_tables.upsert(building, TABLE, pa.concat_tables(older).cast(schema))
        building.rename(self.master)

    def ours(self) -> tuple[float, JobResult, Path]:
        """Seconds, result and warehouse of this project's MERGE on a fresh copy."""
        warehouse = copy_of(self.master)
        source = FileSource("s", str(self.source), "parquet")
        return *timed(self.spark, warehouse, TABLE, STATEMENT, source), warehouse

    def plain(self) -> tuple[float, Path]:
        """Seconds and output folder of the plain Spark plan on the same files."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        files = keyed_tables.record_files(self.master, TABLE)
        source = self.spark.read.parquet(str(self.source))
        started = time.perf_counter()
        plain_spark.keyed_merge(self.spark, files, keyed_tables.KEY, source, out)
        return time.perf_counter() - started, out


def _older_changes(part: pa.Table) -> pa.Table:
    return duckdb.sql(_OLDER_CHANGES).to_arrow_table()


def measure(bench: Bench, runs: int) -> None:
    """Compare both sides."""

    def same(warehouse: Path, out: Path) -> bool:
        files = keyed_tables.record_files(warehouse, TABLE)
        ours = keyed_tables.fingerprint(keyed_tables.newest_records(files), COLUMNS)
        plain = f"FROM read_parquet('{out}/*.parquet')"
        return ours == keyed_tables.fingerprint(plain, COLUMNS)

    Comparison(
        bench.kind,
        bench.ours,
        bench.plain,
        lambda result, out: (
            f"{result.metrics.bytes_added / 2**20:.1f} MiB written, by overwriting "
            f"{sum(path.stat().st_size for path in out.glob('*.parquet')) / 2**20:.1f} MiB"
        ),
        same,
    ).measure(runs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=120_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--table", choices=sorted(OPTIONS))
    parsed = parser.parse_args()
    spark = session()
    for kind in [parsed.table] if parsed.table else OPTIONS:
        bench = Bench(spark, parsed.rows, parsed.changes, kind)
        bench.prepare()
        measure(bench, parsed.runs)


if __name__ == "__main__":
    main()
