"""Compaction of very many small files, and what a scan gains by it.

``python -m benchmarks.compact_small_files [--partitions N] [--files N] [--rows N]``, in
``.venv-spark``. The table has 200 files of 1,000 rows in each of 50 partitions, which ten snapshots
added; a compaction makes one file of each partition. Prints the seconds of scans before and after,
those of the compaction by phase, the peak memory of the Python driver, the size of the JVM's heap,
and what a second run does. The scans: Spark's own reader, and this project's in Spark tasks, read
all columns or one of the files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import statistics
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.comparison import ROOT, files_of, session, timed
from spark_jobs.connectors.paimon.library import data_files, table_schema
from spark_jobs.connectors.paimon.read.scan import PaimonScan
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.datafiles.statistics import ColumnStatistics

TABLE = TableName("bench", "small_files")
COLUMNS = (
    ColumnSpec("part", "INT"),
    ColumnSpec("id", "BIGINT"),
    ColumnSpec("amount", "DOUBLE"),
    ColumnSpec("comment", "STRING"),
)
_HEAP = "768m"
_SNAPSHOTS = 10


def build(warehouse: Path, partitions: int, files: int, rows: int) -> None:
    """The table; every snapshot adds a share of the files of each partition."""
    from pypaimon.write.commit_message import CommitMessage

    warehouse.mkdir(parents=True)
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    connector.metadata.create_table(TABLE, CreateTableSpec(COLUMNS, partition_keys=("part",)))
    table = connector.metadata.load_table(TABLE).native.table
    for share in np.array_split(np.arange(files), min(_SNAPSHOTS, files)):
        messages = []
        for part in range(partitions):
            folder = Path(table_schema.bucket_directory(table, (part,), 0))
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [int(part * files + each) for each in share]
            added = [_file(table, folder, part, number * rows, rows) for number in numbers]
            messages.append(CommitMessage((part,), 0, added))
        commit = table.new_batch_write_builder().new_commit()
        commit.commit(messages)
        commit.close()


def _file(table: Any, folder: Path, part: int, first: int, rows: int) -> Any:
    """A new file with the ids from ``first`` on."""
    ids = np.arange(first, first + rows)
    amounts = (ids * 7919 % 100_003) / 100
    comments = [f"comment {each * 31 % 9973} of {each}" for each in ids.tolist()]
    content = pa.table(
        {"part": np.full(rows, part, np.int32), "id": ids, "amount": amounts, "comment": comments}
    )
    path = folder / f"data-{uuid.uuid4()}-0.parquet"
    pq.write_table(content, path, compression="zstd")
    known = {
        "part": ColumnStatistics(part, part, 0),
        "id": ColumnStatistics(first, first + rows - 1, 0),
        "amount": ColumnStatistics(float(amounts.min()), float(amounts.max()), 0),
        "comment": ColumnStatistics(min(comments), max(comments), 0),
    }
    return data_files.new_data_file(table, str(path), path.stat().st_size, rows, known)


def by_spark(spark: SparkSession, warehouse: Path, columns: Sequence[str]) -> None:
    """Spark's own reader of parquet, given the files of the latest snapshot."""
    kinds = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    rows = spark.read.schema(kinds).parquet(*files_of(warehouse, TABLE)).select(*columns)
    rows.write.format("noop").mode("overwrite").save()


def by_this_project(spark: SparkSession, warehouse: Path, columns: Sequence[str]) -> None:
    """Planning, and reading in Spark tasks."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = connector.metadata.load_table(TABLE)
    files = connector.metadata.plan_files(table)
    rows = PaimonScan(pafs.LocalFileSystem()).read(spark, table, files, columns)
    rows.write.format("noop").mode("overwrite").save()


_ALL = tuple(column.name for column in COLUMNS)
_ONE = ("amount",)
_SCANS = {
    "Spark, all columns": (by_spark, _ALL),
    "Spark, one column": (by_spark, _ONE),
    "this project, all columns": (by_this_project, _ALL),
    "this project, one column": (by_this_project, _ONE),
}


def scans(spark: SparkSession, warehouse: Path, runs: int) -> dict[str, float]:
    """The median seconds of each kind of scan; the first run of each warms up."""
    found = {}
    for name, (scan, columns) in _SCANS.items():
        seconds = []
        for _ in range(runs + 1):
            started = time.perf_counter()
            scan(spark, warehouse, columns)
            seconds.append(time.perf_counter() - started)
        found[name] = statistics.median(seconds[1:])
    return found


def fingerprint(files: Iterable[str]) -> tuple[object, ...]:
    """A value that two sets of files share when they hold the same rows."""
    columns = ", ".join(column.name for column in COLUMNS)
    query = f"SELECT count(*), sum(hash({columns})) FROM read_parquet({list(files)})"
    return duckdb.sql(query).fetchone() or ()


def heap(spark: SparkSession) -> tuple[float, float]:
    """MiB of the JVM's heap: the largest that it was after a collection, and the limit."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    used = sum(
        pool.getCollectionUsage().getUsed()
        for pool in pools
        if pool.getType().name() == "HEAP" and pool.getCollectionUsage() is not None
    )
    return used / 2**20, jvm.java.lang.Runtime.getRuntime().maxMemory() / 2**20


def measure(spark: SparkSession, warehouse: Path, runs: int) -> None:
    """Scan, compact, scan, and compact once more."""
    before_files = files_of(warehouse, TABLE)
    expected = fingerprint(before_files)
    before = scans(spark, warehouse, runs)
    seconds, result = timed(spark, warehouse, TABLE, CompactSpec(min_files=2))
    after_files = files_of(warehouse, TABLE)
    after = scans(spark, warehouse, runs)
    again_seconds, again = timed(spark, warehouse, TABLE, CompactSpec(min_files=2))
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    live, limit = heap(spark)
    same = fingerprint(after_files) == expected
    print(
        f"{len(before_files)} files became {len(after_files)} in {seconds:.1f} s "
        f"{dict(result.metrics.seconds)}, {expected[0]} rows, same rows: {'yes' if same else 'NO'}"
    )
    for name, seconds_before in before.items():
        ratio = seconds_before / after[name]
        print(f"{name}: before {seconds_before:.2f} s, after {after[name]:.2f} s, {ratio:.1f} x")
    print(
        f"Python driver: {driver:.0f} MiB at its peak; "
        f"JVM heap: {live:.0f} MiB live, {limit:.0f} MiB allowed"
    )
    print(
        f"second run: {again.status} in {again_seconds:.2f} s, "
        f"{'a' if again.new_snapshot_id else 'no'} snapshot"
    )
    if not same or again.status != "unchanged":
        raise SystemExit("the rows differ, or the second run found something to do")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--files", type=int, default=200, help="in each partition")
    parser.add_argument("--rows", type=int, default=1000, help="in each file")
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    master = ROOT / f"small-files-{parsed.partitions}-{parsed.files}-{parsed.rows}"
    if not master.exists():
        building = ROOT / f"building-{uuid.uuid4().hex}"
        arguments = (building, parsed.partitions, parsed.files, parsed.rows)
        # In a process of its own, whose memory does not count.
        builder = multiprocessing.get_context("spawn").Process(target=build, args=arguments)
        builder.start()
        builder.join()
        building.rename(master)
    warehouse = ROOT / f"run-{uuid.uuid4().hex}"
    shutil.copytree(master, warehouse)
    try:
        measure(session(heap=_HEAP), warehouse, parsed.runs)
    finally:
        shutil.rmtree(warehouse)


if __name__ == "__main__":
    main()
