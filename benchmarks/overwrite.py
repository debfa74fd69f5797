"""INSERT OVERWRITE of some partitions against Spark's own dynamic parquet overwrite.

``python -m benchmarks.overwrite [--rows N] [--runs N] [--source table|files] [--only NAME]``, in
``.venv-spark``. First 2 of 10 partitions of a table of 17 columns are replaced, alternating with
``DataFrame.write`` in mode ``overwrite`` and ``partitionOverwriteMode = dynamic`` on the same rows,
which commits nothing. Then 2,000 partitions are written in one run. Prints each run's seconds, the
medians' ratio, the files written and the peak memory of Python workers.
"""

from __future__ import annotations

import argparse
import shutil
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import lineitem
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
from benchmarks.memory import PeakMemory
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.request import (
    FileSource,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult

TABLE = TableName("bench", "daily")
STAGING = TableName("bench", "staging")
PARTITIONS = 10
MANY = 2_000
STATEMENT = InsertOverwriteSpec("s", "dynamic", by_name=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """A table of ``rows`` in ten partitions, and new rows for two of them."""

    spark: SparkSession
    rows: int

    @property
    def master(self) -> Path:
        """The warehouse that every run starts from."""
        return ROOT / f"partitioned-{self.rows}"

    @property
    def landing(self) -> Path:
        """The folder with the new rows as parquet files."""
        return ROOT / f"landing-{self.rows}"

    def prepare(self) -> None:
        """Write tables and files unless an earlier call did."""
        ROOT.mkdir(exist_ok=True)
        if self.master.exists():
            return
        building = ROOT / f"building-{uuid.uuid4().hex}"
        shutil.rmtree(self.landing, ignore_errors=True)
        self.landing.mkdir()
        for number, part in enumerate(lineitem.target_files(self.rows)):
            partition = number * PARTITIONS // lineitem.FILES
            rows = part.append_column("part", pa.array([partition] * part.num_rows, pa.int32()))
            append(building, TABLE, rows, ["part"])
            if partition < 2:
                append(building, STAGING, rows)
                pq.write_table(rows, self.landing / f"{number}.parquet", compression="zstd")
        building.rename(self.master)

    def ours(self, source: Source) -> tuple[float, JobResult, Path]:
        """Seconds, result and warehouse of this project's statement on a fresh copy."""
        warehouse = copy_of(self.master)
        return *timed(self.spark, warehouse, TABLE, STATEMENT, source), warehouse

    def plain(self) -> tuple[float, Path]:
        """Seconds and folder of Spark's own overwrite of a folder that has the same partitions."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        for partition in range(PARTITIONS):
            (out / f"part={partition}").mkdir(parents=True)
            for path in files_of(self.master, TABLE, partition):
                (out / f"part={partition}" / Path(path).name).hardlink_to(path)
        started = time.perf_counter()
        (
            self.spark.read.parquet(str(self.landing))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .option("compression", "zstd")
            .partitionBy("part")
            .parquet(str(out))
        )
        return time.perf_counter() - started, out


def measure(bench: Bench, source: Source, runs: int) -> None:
    """Compare both sides for one kind of source."""

    def same(warehouse: Path, out: Path) -> bool:
        plain = [str(path) for path in out.rglob("*.parquet")]
        return fingerprint(files_of(warehouse, TABLE)) == fingerprint(plain)

    Comparison(
        source.kind,
        lambda: bench.ours(source),
        bench.plain,
        lambda result, out: f"{result.metrics.files_added} and {_new_files(out)} files",
        same,
    ).measure(runs)


def _new_files(out: Path) -> int:
    return sum(path.name.startswith("part-") for path in out.rglob("*.parquet"))


def many_partitions(bench: Bench) -> None:
    """Write all staged rows into 2,000 partitions."""
    query = f"SELECT * EXCEPT (part), CAST(pmod(hash(id), {MANY}) AS INT) AS part FROM staged"
    many = TableName("bench", "many")
    # An empty table of the same columns.
    rows = pq.read_schema(next(bench.landing.glob("*.parquet"))).empty_table()
    if not (bench.master / "bench.db" / "many").exists():
        from pypaimon import CatalogFactory, Schema

        schema = Schema.from_pyarrow_schema(
            rows.schema, partition_keys=["part"], options={"bucket": "-1"}
        )
        catalog = CatalogFactory.create({"warehouse": str(bench.master)})
        catalog.create_table(str(many), schema, ignore_if_exists=True)
    warehouse = copy_of(bench.master)
    sources = (TableSource("staged", STAGING), SqlSource("s", query))
    for label in ("new", "replaced"):
        with PeakMemory() as memory:
            seconds, result = timed(bench.spark, warehouse, many, STATEMENT, *sources)
        print(
            f"{MANY} partitions, {label}: {seconds:.2f} s {dict(result.metrics.seconds)}, "
            f"{result.metrics.inserted} rows, {result.metrics.files_added} files written, "
            f"{result.metrics.files_removed} removed, "
            f"largest Python worker {memory.largest_worker / 2**20:.0f} MiB",
            flush=True,
        )
    count = duckdb.sql(f"SELECT count(*) FROM read_parquet({files_of(warehouse, many)})")
    print(f"rows afterwards: {(count.fetchone() or (0,))[0]}")
    shutil.rmtree(warehouse)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--source", choices=["table", "files"])
    parser.add_argument("--only", choices=["two", "many"])
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows)
    bench.prepare()
    sources: dict[str, Source] = {
        "table": TableSource("s", STAGING),
        "files": FileSource("s", str(bench.landing), "parquet"),
    }
    if parsed.only != "many":
        for name in [parsed.source] if parsed.source else sources:
            measure(bench, sources[name], parsed.runs)
    if parsed.only != "two":
        many_partitions(bench)


if __name__ == "__main__":
    main()
