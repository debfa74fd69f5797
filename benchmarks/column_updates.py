"""A merge that assigns two of many columns: as files of columns, copy-on-write, and plain Spark.

``python -m benchmarks.column_updates [--rows N] [--columns N] [--changes N] [--runs N]``, in
``.venv-spark``; ``--plain-runs N`` for fewer runs of plain Spark, which takes longer. The table has
N columns in ten files; the source updates rows that are scattered over all of them. This project
merges into a table with data evolution and into a copy-on-write table; the plain plan is that of
``benchmarks.plain_spark``. All alternate in one process. Prints seconds, bytes written, their
ratios, and whether all have the same rows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
from pypaimon import CatalogFactory
from pyspark.sql import SparkSession

from benchmarks import plain_spark
from benchmarks.comparison import ROOT, append, copy_of, files_of, session, timed
from spark_jobs.contract.request import FileSource, TableName
from spark_jobs.contract.statements import Assignment, MergeCase, MergeSpec, UpdateAction

TABLE = TableName("bench", "wide")
FILES = 10
OPTIONS = {
    "columns": {"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    "copy-on-write": {},
}
PLAIN = "plain Spark"
ASSIGNED = ("price", "comment")
STATEMENT = MergeSpec(
    "s",
    "t.id = s.id",
    (MergeCase("matched", UpdateAction(tuple(Assignment(n, f"s.{n}") for n in ASSIGNED))),),
    "t",
    "s",
)

_CHANGES = """
COPY (SELECT DISTINCT (i * 7919 * 31) % {rows} AS id, (i % 1000)::DECIMAL(15, 2) AS price,
             'upd ' || i AS comment, FALSE AS del
      FROM range({changes}) t(i)) TO '{path}' (FORMAT parquet)
"""


@dataclass
class Bench:
    """Tables of ``rows`` rows and ``columns`` columns, prepared below ``.bench``."""

    spark: SparkSession
    rows: int
    columns: int
    changes: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    def master(self, kind: str) -> Path:
        """The warehouse of a kind of table before the merge."""
        return ROOT / f"wide-{kind}-{self.rows}-{self.columns}"

    @property
    def source(self) -> Path:
        """The changes, as a parquet file."""
        return ROOT / f"wide-changes-{self.rows}-{self.changes}.parquet"

    def prepare(self) -> None:
        """Write the tables and the source unless an earlier call did."""
        ROOT.mkdir(exist_ok=True)
        for kind, options in OPTIONS.items():
            if self.master(kind).exists():
                continue
            building = ROOT / f"building-{uuid.uuid4().hex}"
            for part in self._parts():
                append(building, TABLE, part, options=options)
            building.rename(self.master(kind))
        query = _CHANGES.format(rows=self.rows, changes=self.changes, path=self.source)
        duckdb.sql(query)

    def measure(self, runs: int, plain_runs: int) -> None:
        """Alternate all sides; the first round warms up."""
        for number in range(runs + 1):
            found = {kind: self._merge(kind, number) for kind in OPTIONS}
            if number <= plain_runs:
                found[PLAIN] = self._plain(number)
            if len(set(found.values())) > 1:
                raise SystemExit("the sides have different rows")
        ours, others = statistics.median(self.seconds["columns"]), dict(self.seconds)
        del others["columns"]
        for kind, seconds in others.items():
            share = self.bytes["columns"] / self.bytes[kind]
            print(
                f"columns {ours:.2f} s, {kind} {statistics.median(seconds):.2f} s, "
                f"ratio {statistics.median(seconds) / ours:.2f}; "
                f"bytes written {share:.2%} of {kind}"
            )
        print("same rows: yes")

    def _merge(self, kind: str, number: int) -> tuple[object, ...]:
        warehouse = copy_of(self.master(kind))
        source = FileSource("s", str(self.source), "parquet")
        seconds, result = timed(self.spark, warehouse, TABLE, STATEMENT, source)
        self._note(kind, number, seconds, result.metrics.bytes_added)
        print(f"  plan {result.metrics.plan}, {dict(result.metrics.seconds)}", flush=True)
        builder = CatalogFactory.create({"warehouse": str(warehouse)}).get_table(str(TABLE))
        read = builder.new_read_builder().with_projection(["id", *ASSIGNED, "c0"])
        rows = read.new_read().to_arrow(read.new_scan().plan().splits())
        shutil.rmtree(warehouse)
        return _fingerprint(rows)

    def _plain(self, number: int) -> tuple[object, ...]:
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        files = files_of(self.master("copy-on-write"), TABLE)
        started = time.perf_counter()
        source = self.spark.read.parquet(str(self.source))
        plain_spark.merge(self.spark, files, source, out, inserts=False)
        seconds = time.perf_counter() - started
        written = list(out.glob("*.parquet"))
        self._note(PLAIN, number, seconds, sum(path.stat().st_size for path in written))
        names = ", ".join(("id", *ASSIGNED, "c0"))
        rows = duckdb.sql(f"SELECT {names} FROM read_parquet('{out}/*.parquet')").to_arrow_table()
        shutil.rmtree(out)
        return _fingerprint(rows)

    def _note(self, kind: str, number: int, seconds: float, size: int) -> None:
        warm_up = " (warm-up)" if number == 0 else ""
        print(f"run {number}{warm_up}: {kind} {seconds:.2f} s, {size} bytes", flush=True)
        self.bytes[kind] = size
        if number:
            self.seconds.setdefault(kind, []).append(seconds)

    def _parts(self) -> Iterator[pa.Table]:
        """The rows, one table for each file; the columns are integers, doubles and texts."""
        values = (
            "((hash(i + {n}) % 100000)::BIGINT)::INT AS c{n}",
            "((hash(i + {n}) % 1000000)::BIGINT / 7.0)::DOUBLE AS c{n}",
            "'text ' || (hash(i + {n}) % 1000)::VARCHAR AS c{n}",
            "(hash(i + {n}) % 1000000000)::BIGINT AS c{n}",
        )
        count = self.columns - len(ASSIGNED) - 1
        columns = ", ".join(values[n % len(values)].format(n=n) for n in range(count))
        for number in range(FILES):
            low, high = number * self.rows // FILES, (number + 1) * self.rows // FILES
            yield duckdb.sql(
                f"SELECT i AS id, ((hash(i + 3) % 10000000)::BIGINT / 100.0)::DECIMAL(15, 2) AS "
                f"price, 'comment ' || md5(i::VARCHAR)[:20] AS comment, {columns} "
                f"FROM range({low}, {high}) t(i)"
            ).to_arrow_table()


def _fingerprint(rows: pa.Table) -> tuple[object, ...]:
    """A value that tables with the same rows share."""
    names = ", ".join(rows.column_names)
    return duckdb.sql(f"SELECT count(*), sum(hash({names})) FROM rows").fetchone() or ()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plain-runs", type=int, default=2)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, parsed.columns, parsed.changes)
    bench.prepare()
    bench.measure(parsed.runs, parsed.plain_runs)


if __name__ == "__main__":
    main()
