"""Compaction of small files against a plain Spark read, coalesce and overwrite, in one process.

``python -m benchmarks.compact_append [--mb N] [--rows N] [--runs N]``, in ``.venv-spark``. The
table has N MB of line items in files of 300,000 to 500,000 rows (8 to 14 MB), each of one row
group and written as this project's statements write them; a compaction makes files of 128 MB. The
plain plan reads the files with Spark, coalesces
them to as many partitions as it is to write files, and writes parquet with the same codec; it
commits nothing. Prints the seconds of both in turns, the ratio, the peak memory of Python workers,
whether both have the same rows, and how many row groups were copied without decoding.
"""

from __future__ import annotations

import argparse
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import lineitem
from benchmarks.comparison import ROOT, Comparison, copy_of, files_of, session, timed
from spark_jobs.connectors.paimon.library import data_files, table_schema
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter

TABLE = TableName("bench", "lineitem")
TARGET = "128 mb"
_MIB = 2**20
# Rows of a file: 8 to 14 MB.
_FEWEST, _MOST = 300_000, 500_000
_COMMITTED = 20


@dataclass(frozen=True, slots=True)
class Bench:
    """A table of ``size`` MiB, prepared below ``.bench``; ``most`` rows are in a file."""

    spark: SparkSession
    size: int
    most: int

    @property
    def master(self) -> Path:
        """The warehouse that every run starts from."""
        return ROOT / f"small-files-{self.size}-{self.most}"

    def prepare(self) -> None:
        """Write the table unless an earlier call did; each snapshot adds 20 files."""
        if self.master.exists():
            return
        building = ROOT / f"building-{uuid.uuid4().hex}"
        building.mkdir(parents=True)
        connector = open_connector(CatalogSpec("paimon", str(building)), {})
        columns = tuple(ColumnSpec(name, kind) for name, kind in lineitem.COLUMNS)
        connector.metadata.create_table(TABLE, CreateTableSpec(columns))
        table = connector.metadata.load_table(TABLE).native.table
        folder = Path(table_schema.bucket_directory(table, (), 0))
        folder.mkdir(parents=True)
        chance, written, first = random.Random(1), 0, 0
        while written < self.size * _MIB:
            files = []
            for _ in range(_COMMITTED):
                rows = chance.randrange(self.most * _FEWEST // _MOST, self.most)
                files.append(_file(table, folder, first, rows))
                first, written = first + rows, written + files[-1].file_size
                if written >= self.size * _MIB:
                    break
            _commit(table, files)
        building.rename(self.master)

    def ours(self) -> tuple[float, JobResult, Path]:
        """Seconds, result and warehouse of a compaction of a fresh copy."""
        warehouse = copy_of(self.master)
        statement = CompactSpec(mode="full", target_file_size=TARGET)
        return *timed(self.spark, warehouse, TABLE, statement), warehouse

    def plain(self) -> tuple[float, Path]:
        """Seconds and output folder of the plain Spark plan on the same files."""
        out = ROOT / f"plain-{uuid.uuid4().hex}"
        files = files_of(self.master, TABLE)
        number = max(1, round(sum(Path(file).stat().st_size for file in files) / (128 * _MIB)))
        started = time.perf_counter()
        rows = self.spark.read.parquet(*files).coalesce(number)
        rows.write.mode("overwrite").option("compression", "zstd").parquet(str(out))
        return time.perf_counter() - started, out


def _file(table: object, folder: Path, first: int, rows: int) -> object:
    """A new file of one row group, with the ids from ``first`` on."""
    schema = table_schema.arrow_schema(table)
    path = str(folder / f"data-{uuid.uuid4()}-0.parquet")
    writer = ParquetFileWriter(pafs.LocalFileSystem(), path, schema, Compression())
    writer.write_row_group(lineitem.rows_between(first, first + rows).cast(schema))
    written = writer.finish()
    return data_files.new_data_file(table, path, written.size, rows, written.statistics)


def _commit(table: object, files: list[object]) -> None:
    from pypaimon.write.commit_message import CommitMessage

    commit = table.new_batch_write_builder().new_commit()  # type: ignore[attr-defined]
    commit.commit([CommitMessage((), 0, files)])
    commit.close()


def row_groups(files: Iterable[str]) -> Counter[tuple[int, int]]:
    """The row groups of the files, told apart by their rows and bytes."""
    found: Counter[tuple[int, int]] = Counter()
    for file in files:
        metadata = pq.ParquetFile(file).metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        found.update((group.num_rows, group.total_byte_size) for group in groups)
    return found


def fingerprint(files: Iterable[str]) -> tuple[object, ...]:
    """A value that two sets of files share when they hold the same rows."""
    columns = ", ".join(name for name, _ in lineitem.COLUMNS)
    query = f"SELECT count(*), sum(hash({columns})) FROM read_parquet({list(files)})"
    return duckdb.sql(query).fetchone() or ()


def measure(bench: Bench, runs: int) -> None:
    """Compare both sides."""
    before = files_of(bench.master, TABLE)
    groups = row_groups(before)
    print(f"{len(before)} files, {sum(groups.values())} row groups", flush=True)

    def same(warehouse: Path, out: Path) -> bool:
        files = files_of(warehouse, TABLE)
        new = row_groups(files)
        print(
            f"{len(files)} files, {sum(new.values())} row groups, "
            f"{(groups & new).total()} of them copied without decoding",
            flush=True,
        )
        return fingerprint(files) == fingerprint(map(str, out.glob("*.parquet")))

    Comparison(
        "append",
        bench.ours,
        bench.plain,
        lambda result, out: (
            f"{result.metrics.bytes_added / _MIB:.0f} MiB written, by overwriting "
            f"{sum(path.stat().st_size for path in out.glob('*.parquet')) / _MIB:.0f} MiB"
        ),
        same,
    ).measure(runs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=_MOST, help="the most in a file")
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    ROOT.mkdir(exist_ok=True)
    bench = Bench(session(), parsed.mb, parsed.rows)
    bench.prepare()
    measure(bench, parsed.runs)


if __name__ == "__main__":
    main()
