"""MERGE against a plain Spark copy-on-write plan, alternating in one process.

``python -m benchmarks.merge [--table cow|dv] [--format parquet|orc] [--rows N] [--changes N]
[--runs N]``. Prints each run's seconds, the medians' ratio, the phases of this project's side, the
bytes that it wrote, the peak memory of Python workers, and whether both sides have the same rows
afterwards. ``--table dv``: this project's table has deletion vectors; the plain plan copies on
write as before. ``--format``: that of the table's files; both sides write parquet.
"""

from __future__ import annotations

import argparse
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession

from benchmarks import lineitem, plain_spark
from benchmarks.comparison import (
    ROOT,
    Comparison,
    append,
    copy_of,
    files_of,
    fingerprint,
    session,
    timed,
)
from spark_jobs.connectors.paimon.format.vectors import read_vector
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, FileSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
)

TABLE = TableName("bench", "lineitem")
_UPDATE = UpdateAction((Assignment("price", "s.price"), Assignment("comment", "s.comment")))
_INSERT = InsertAction(values=("s.id", "s.price", "s.comment"), columns=("id", "price", "comment"))
STATEMENTS = {
    "mixed": (
        MergeCase("matched", DeleteAction(), "s.del"),
        MergeCase("matched", _UPDATE),
        MergeCase("not_matched", _INSERT),
    ),
    "update": (MergeCase("matched", _UPDATE),),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One size of table and source, prepared below ``.bench``."""

    spark: SparkSession
    rows: int
    changes: int
    vectors: bool
    file_format: str

    @property
    def master(self) -> Path:
        """The warehouse that every run starts from."""
        name = f"master-{self.rows}"
        return ROOT / (name if self.file_format == "parquet" else f"{name}-{self.file_format}")

    @property
    def source(self) -> Path:
        """The parquet file of changes."""
        return ROOT / f"changes-{self.rows}-{self.changes}.parquet"

    def prepare(self) -> None:
        """Write table and source unless an earlier call did."""
        ROOT.mkdir(exist_ok=True)
        if not self.source.exists():
            lineitem.write_changes(self.source, self.rows, self.changes)
        if not self.master.exists():
            building = ROOT / f"building-{uuid.uuid4().hex}"
            for part in lineitem.target_files(self.rows):
                append(building, TABLE, part, file_format=self.file_format)
            building.rename(self.master)

    def ours(self, name: str) -> tuple[float, JobResult, Path]:
        """Seconds, result and warehouse of this project's MERGE on a fresh copy."""
        warehouse = copy_of(self.master)
        if self.vectors:
            enable_vectors(warehouse)
        statement = MergeSpec("s", "t.id = s.id", STATEMENTS[name], "t", "s")
        source = FileSource("s", str(self.source), "parquet")
        return *timed(self.spark, warehouse, TABLE, statement, source), warehouse

    def plain(self, name: str) -> tuple[float, Path]:
        """Seconds and output folder of the plain Spark plan on the same files."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        files = files_of(self.master, TABLE)
        source = self.spark.read.parquet(str(self.source))
        if name == "update":
            source = source.selectExpr("id", "price", "comment", "false AS del")
        started = time.perf_counter()
        inserts, file_format = name == "mixed", self.file_format
        plain_spark.merge(self.spark, files, source, out, inserts=inserts, file_format=file_format)
        return time.perf_counter() - started, out


def enable_vectors(warehouse: Path, name: TableName = TABLE) -> None:
    """Let a table mark deleted rows from now on."""
    from pypaimon import CatalogFactory
    from pypaimon.schema.schema_change import SchemaChange

    change = SchemaChange.set_option("deletion-vectors.enabled", "true")
    CatalogFactory.create({"warehouse": str(warehouse)}).alter_table(str(name), [change], False)


def marked_rows(warehouse: Path, name: TableName = TABLE) -> pa.Table:
    """The rows that deletion vectors mark: ``path`` (string) and ``row`` (bigint)."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = connector.metadata.load_table(name)
    vectors = pinned_table(table).files.vectors
    marked = [pa.table({"path": pa.array([], pa.string()), "row": pa.array([], pa.int64())})]
    for file in connector.metadata.plan_files(table):
        if file.deleted_row_count:
            rows = read_vector(pafs.LocalFileSystem(), vectors[Path(file.path).name])
            marked.append(pa.table({"path": [file.path] * len(rows), "row": rows}))
    return pa.concat_tables(marked)


def measure(bench: Bench, name: str, runs: int) -> None:
    """Compare both sides for one of the statements."""

    def same(warehouse: Path, out: Path) -> bool:
        ours = fingerprint(files_of(warehouse, TABLE), marked_rows(warehouse))
        return ours == fingerprint([str(path) for path in out.glob("*.parquet")])

    Comparison(
        name,
        lambda: bench.ours(name),
        lambda: bench.plain(name),
        lambda result, out: (
            f"{result.metrics.bytes_added / 2**20:.1f} MiB written, by copying "
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
    parser.add_argument("--table", choices=["cow", "dv"], default="cow")
    parser.add_argument("--format", choices=["parquet", "orc"], default="parquet")
    parser.add_argument("--only", choices=sorted(STATEMENTS))
    parsed = parser.parse_args()
    if parsed.format == "orc" and parsed.table == "dv":
        parser.error("--format orc needs --table cow: duckdb, which compares rows, reads no ORC")
    bench = Bench(session(), parsed.rows, parsed.changes, parsed.table == "dv", parsed.format)
    bench.prepare()
    for name in [parsed.only] if parsed.only else STATEMENTS:
        measure(bench, name, parsed.runs)


if __name__ == "__main__":
    main()
