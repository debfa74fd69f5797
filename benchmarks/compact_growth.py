"""What many small merges cost, with a compaction every now and then and without.

``python -m benchmarks.compact_growth [--rows N] [--merges N] [--every N] [--kinds ...]``, in
``.venv-spark``. Into a table of each kind (1 million rows of 16 columns) go 100 merges of 0.1 % of
its rows, four of five of them updates; one copy of the table is compacted (``minor``, then by the
table's defaults) after every tenth merge, the other never. Prints a table of the seconds of the
merges and of a full read, which ``docs/benchmarks.md`` shows, and how the last ones (medians of
three) compare with the first.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession

from benchmarks import keyed_tables, lineitem
from benchmarks.comparison import ROOT, append, session, timed
from benchmarks.keyed_merge import STATEMENT
from spark_jobs.connectors.paimon.read.scan import PaimonScan
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec, FileSource, TableName

TABLE = TableName("bench", "lineitem")
COLUMNS = tuple(name for name, _ in lineitem.COLUMNS)
# Options by the name of the kind; those with a number of buckets have a primary key.
KINDS: Mapping[str, Mapping[str, str]] = {
    "append": {},
    "append with vectors": {"deletion-vectors.enabled": "true"},
    "keyed append": {"bucket": "2"},
    "keyed rewrite": {"bucket": "2", "merge-engine": "partial-update"},
}
_SHARE = 1000
_COMPARED = 3
_WARM_UP = 10

# Four of five keys exist, scattered over the whole table; the others are new.
_CHANGES = """
SELECT CASE WHEN i % 5 = 4 THEN {rows} + {number} * {changes} + i
            ELSE ((i * 7919 + {number}::BIGINT * 104729) * 31) % {rows} END AS id,
       (i % 1000)::DECIMAL(15, 2) AS price,
       'upd {number} ' || i AS comment
FROM range({changes}) t(i) QUALIFY row_number() OVER (PARTITION BY id ORDER BY i) = 1
"""


@dataclass(frozen=True, slots=True)
class Course:
    """What happened to one copy of a table: seconds of its merges, and of reads by their number.

    ``compactions``: seconds of each. ``files``: how many there were, by the number of merges.
    """

    merges: list[float] = field(default_factory=list)
    reads: dict[int, float] = field(default_factory=dict)
    compactions: list[float] = field(default_factory=list)
    files: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bench:
    """A kind of table of ``rows`` rows, ``merges`` of it, and a compaction ``every`` so many."""

    spark: SparkSession
    kind: str
    rows: int
    merges: int
    every: int

    def run(self, *, compacts: bool) -> Course:
        """Merge into a new table as often as asked."""
        warehouse = ROOT / f"growth-{uuid.uuid4().hex}"
        course = Course()
        try:
            self._fill(warehouse)
            self._merge(warehouse, -1)  # warms up
            self._look(warehouse, 0, course)
            for number in range(1, self.merges + 1):
                course.merges.append(self._merge(warehouse, number))
                if number % self.every == 0:
                    if compacts:
                        seconds, _ = timed(self.spark, warehouse, TABLE, CompactSpec())
                        course.compactions.append(seconds)
                    self._look(warehouse, number, course)
                    self._tell(number, course, compacts=compacts)
        finally:
            shutil.rmtree(warehouse, ignore_errors=True)
        return course

    def _fill(self, warehouse: Path) -> None:
        warehouse.mkdir(parents=True)
        options = KINDS[self.kind]
        if "bucket" in options:
            keyed_tables.create(warehouse, TABLE, lineitem.rows_between(0, 0).schema, options)
            parts = self._parts()
            keyed_tables.fill(self.spark, warehouse, TABLE, parts)
            return
        for part in self._parts():
            append(warehouse, TABLE, part, options=options)

    def _parts(self) -> Iterator[pa.Table]:
        for number in range(4):
            low, high = number * self.rows // 4, (number + 1) * self.rows // 4
            yield lineitem.rows_between(low, high)

    def _merge(self, warehouse: Path, number: int) -> float:
        """Seconds of one merge; its source is not counted."""
        source = warehouse / "source.parquet"
        changes = max(1, self.rows // _SHARE)
        query = _CHANGES.format(rows=self.rows, number=number % (self.merges + 2), changes=changes)
        duckdb.sql(f"COPY ({query}) TO '{source}' (FORMAT parquet, COMPRESSION zstd)")
        given = FileSource("s", str(source), "parquet")
        return timed(self.spark, warehouse, TABLE, STATEMENT, given)[0]

    def _look(self, warehouse: Path, number: int, course: Course) -> None:
        """A full read, the second of two."""
        for _ in range(2):
            started = time.perf_counter()
            connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
            table = connector.metadata.load_table(TABLE)
            planned = connector.metadata.plan_files(table)
            scan = PaimonScan(pafs.LocalFileSystem())
            rows = scan.read(self.spark, table, planned, COLUMNS)
            rows.write.format("noop").mode("overwrite").save()
            course.reads[number] = time.perf_counter() - started
        course.files[number] = len(table.native.files.located_entries)

    def _tell(self, number: int, course: Course, *, compacts: bool) -> None:
        print(
            f"{self.kind}, {'compacted' if compacts else 'not compacted'}, {number} merges: "
            f"merge {statistics.median(course.merges[-_COMPARED:]):.2f} s, "
            f"read {course.reads[number]:.2f} s, {course.files[number]} files",
            file=sys.stderr,
            flush=True,
        )


def show(kind: str, compacted: Course, left: Course, every: int) -> None:
    """The course of both copies as a table, and the last against the first."""
    print(f"\n{kind}\n")
    print("| Merges | Merge | Read | Files | Merge, not compacted | Read | Files |")
    print("|---|---|---|---|---|---|---|")
    for number in compacted.reads:
        cells = [str(number)]
        for course in (compacted, left):
            near = course.merges[max(0, number - every) : number] or course.merges[:_COMPARED]
            cells += [
                f"{statistics.median(near):.2f} s",
                f"{course.reads[number]:.2f} s",
                str(course.files[number]),
            ]
        print("| " + " | ".join(cells) + " |")
    for name, course in (("compacted", compacted), ("not compacted", left)):
        first = statistics.median(course.merges[:_COMPARED])
        last = statistics.median(course.merges[-_COMPARED:])
        reads = list(course.reads.values())
        print(
            f"{kind}, {name}: the last merges took {last / first:.2f} times as long as the first, "
            f"the last read {reads[-1] / reads[0]:.2f} times",
        )
    if compacted.compactions:
        print(f"{kind}: a compaction took {statistics.median(compacted.compactions):.2f} s")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--merges", type=int, default=100)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parsed = parser.parse_args()
    spark = session()
    # The first merges of a JVM are slower than all that follow.
    for kind in parsed.kinds:
        Bench(spark, kind, parsed.rows, _WARM_UP, _WARM_UP).run(compacts=True)
    for kind in parsed.kinds:
        bench = Bench(spark, kind, parsed.rows, parsed.merges, parsed.every)
        compacted, left = bench.run(compacts=True), bench.run(compacts=False)
        show(kind, compacted, left, parsed.every)


if __name__ == "__main__":
    main()
