"""MERGE against a plain Spark copy-on-write plan, alternating in one process.

``python -m benchmarks.merge [--table cow|dv] [--rows N] [--changes N] [--runs N]``. Prints each
run's seconds, the medians' ratio, the phases of this project's side, the bytes that it wrote, the
peak memory of Python workers, and whether both sides have the same rows afterwards.
``--table dv``: this project's table has deletion vectors; the plain plan copies on write as before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession

from benchmarks import lineitem, plain_spark
from benchmarks.memory import PeakMemory
from spark_jobs.connectors.paimon.native import native
from spark_jobs.connectors.paimon.vectors import read_vector
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
)
from spark_jobs.main import run

ROOT = Path(".bench").absolute()
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

    @property
    def master(self) -> Path:
        """The warehouse that every run starts from."""
        return ROOT / f"master-{self.rows}"

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
            write_table(building, self.rows)
            building.rename(self.master)

    def ours(self, name: str) -> tuple[float, JobResult, Path]:
        """Seconds, result and warehouse of this project's MERGE on a fresh copy."""
        warehouse = ROOT / f"run-{uuid.uuid4().hex}"
        link_warehouse(self.master, warehouse)
        if self.vectors:
            enable_vectors(warehouse)
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=TABLE,
            catalog=CatalogSpec("paimon", str(warehouse)),
            statement=MergeSpec("s", "t.id = s.id", STATEMENTS[name], "t", "s"),
            sources=(FileSource("s", str(self.source), "parquet"),),
        )
        started = time.perf_counter()
        result = run(request, self.spark)
        seconds = time.perf_counter() - started
        if result.error is not None:
            raise SystemExit(f"{result.error.code}: {result.error.message}")
        return seconds, result, warehouse

    def plain(self, name: str) -> tuple[float, Path]:
        """Seconds and output folder of the plain Spark plan on the same files."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        files = table_files(self.master)
        source = self.spark.read.parquet(str(self.source))
        if name == "update":
            source = source.selectExpr("id", "price", "comment", "false AS del")
        started = time.perf_counter()
        plain_spark.merge(self.spark, files, source, out, inserts=name == "mixed")
        return time.perf_counter() - started, out


def write_table(warehouse: Path, rows: int) -> None:
    """The target as a Paimon append table, one commit and one file per part."""
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database(TABLE.database, ignore_if_exists=True)
    for part in lineitem.target_files(rows):
        if not (warehouse / f"{TABLE.database}.db" / TABLE.table).exists():
            options = {"bucket": "-1", "target-file-size": "1 gb", "file.compression": "zstd"}
            schema = Schema.from_pyarrow_schema(part.schema, options=options)
            catalog.create_table(str(TABLE), schema, ignore_if_exists=False)
        builder = catalog.get_table(str(TABLE)).new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(part)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()


def link_warehouse(master: Path, copy: Path) -> None:
    """A copy that shares the data files and owns its metadata."""

    def link_data(source: str, target: str) -> object:
        return (os.link if "/bucket-" in source else shutil.copy2)(source, target)

    shutil.copytree(master, copy, copy_function=link_data)


def enable_vectors(warehouse: Path) -> None:
    """Let the table mark deleted rows from now on."""
    from pypaimon import CatalogFactory
    from pypaimon.schema.schema_change import SchemaChange

    change = SchemaChange.set_option("deletion-vectors.enabled", "true")
    CatalogFactory.create({"warehouse": str(warehouse)}).alter_table(str(TABLE), [change], False)


def table_files(warehouse: Path) -> list[str]:
    """The paths of the data files of the latest snapshot."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = connector.metadata.load_table(TABLE)
    return [file.path for file in connector.metadata.plan_files(table)]


def fingerprint(files: list[str], deleted: pa.Table | None = None) -> tuple[object, ...]:
    """A value that two sets of files share when they hold the same rows.

    ``deleted`` (``path`` string, ``row`` bigint) are rows that do not count.
    """
    columns = ", ".join(name for name, _ in lineitem.COLUMNS)
    rows = f"read_parquet({files}, filename = 'path', file_row_number = true)"
    query = f"SELECT count(*), sum(hash({columns})) FROM {rows} t"
    if deleted is not None:
        query += " ANTI JOIN deleted d ON t.path = d.path AND t.file_row_number = d.row"
    return duckdb.sql(query).fetchone() or ()


def marked_rows(warehouse: Path) -> pa.Table:
    """The rows that deletion vectors mark: ``path`` (string) and ``row`` (bigint)."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = connector.metadata.load_table(TABLE)
    vectors = native(table).vectors
    marked = [pa.table({"path": pa.array([], pa.string()), "row": pa.array([], pa.int64())})]
    for file in connector.metadata.plan_files(table):
        if file.deleted_row_count:
            rows = read_vector(pafs.LocalFileSystem(), vectors[Path(file.path).name])
            marked.append(pa.table({"path": [file.path] * len(rows), "row": rows}))
    return pa.concat_tables(marked)


def measure(bench: Bench, name: str, runs: int) -> None:
    """Alternate both sides and print what was seen; the first round warms up."""
    ours, plain, peak = [], [], 0
    for number in range(runs + 1):
        with PeakMemory() as memory:
            seconds, result, warehouse = bench.ours(name)
        plain_seconds, out = bench.plain(name)
        peak = max(peak, memory.largest_worker)
        print(
            f"{name} run {number}{' (warm-up)' if number == 0 else ''}: "
            f"this {seconds:.2f} s {dict(result.metrics.seconds)}, "
            f"plain Spark {plain_seconds:.2f} s, "
            f"{result.metrics.bytes_added / 2**20:.1f} MiB written, "
            f"largest Python worker {memory.largest_worker / 2**20:.0f} MiB",
            flush=True,
        )
        if number:
            ours.append(seconds)
            plain.append(plain_seconds)
        same = fingerprint(table_files(warehouse), marked_rows(warehouse)) == fingerprint(
            [str(path) for path in out.glob("*.parquet")]
        )
        shutil.rmtree(warehouse)
        shutil.rmtree(out)
        if not same:
            raise SystemExit(f"{name}: the two sides wrote different rows")
    ratio = statistics.median(plain) / statistics.median(ours)
    print(
        f"{name}: this {statistics.median(ours):.2f} s, "
        f"plain Spark {statistics.median(plain):.2f} s, ratio {ratio:.2f}, "
        f"largest Python worker {peak / 2**20:.0f} MiB, same rows: yes"
    )


def session() -> SparkSession:
    """Two local cores and a 6 GB heap, as both sides get them."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("benchmark")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", str(lineitem.FILES))
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=120_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--table", choices=["cow", "dv"], default="cow")
    parser.add_argument("--only", choices=sorted(STATEMENTS))
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, parsed.changes, parsed.table == "dv")
    bench.prepare()
    for name in [parsed.only] if parsed.only else STATEMENTS:
        measure(bench, name, parsed.runs)


if __name__ == "__main__":
    main()
