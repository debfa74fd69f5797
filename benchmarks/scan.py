"""Reading a table by pyarrow beside Spark's own parquet reader, alternating in one process.

``python -m benchmarks.scan [--rows N] [--runs N]``. For each share of wanted keys, prints what
reading all columns of the rows with such a key takes: by Spark's reader and a broadcast semi join,
and by pyarrow under a dynamic filter. The last line has no keys: every row is wanted.
"""

from __future__ import annotations

import argparse
import statistics
import time

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.comparison import session
from benchmarks.merge import TABLE, Bench
from spark_jobs.connectors.paimon.read.scan import PaimonScan, Reader
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.evidence import DynamicFilter

SHARES = (0.0001, 0.01, 0.1, 0.25, 0.5, None)
COLUMN = "id"


def read(bench: Bench, reader: Reader, keys: pa.Array | None) -> DataFrame:
    """All columns of the rows that have one of ``keys``."""
    connector = open_connector(CatalogSpec("paimon", str(bench.master)), {})
    table = connector.metadata.load_table(TABLE)
    files = connector.metadata.plan_files(table)
    scan = PaimonScan(pafs.LocalFileSystem(), reader)
    if keys is None:
        return scan.read(bench.spark, table, files, table.column_names)
    if reader == "pyarrow":
        wanted = DynamicFilter({COLUMN: keys})
        return scan.read(bench.spark, table, files, table.column_names, wanted)
    frame = scan.read(bench.spark, table, files, table.column_names)
    return frame.join(F.broadcast(keys_frame(bench.spark, bench.rows, len(keys))), COLUMN, "semi")


def keys_of(rows: int, count: int) -> pa.Array:
    """``count`` keys, evenly spread."""
    return pa.array(range(0, rows, rows // count), pa.int64())


def keys_frame(spark: SparkSession, rows: int, count: int) -> DataFrame:
    """The same keys as a frame."""
    return spark.range(0, rows, rows // count).toDF(COLUMN)


def compare(bench: Bench, share: float | None, runs: int) -> None:
    """Print the medians of both readers for one share of keys."""
    keys = None if share is None else keys_of(bench.rows, int(bench.rows * share))
    seen: dict[Reader, list[float]] = {"spark": [], "pyarrow": []}
    for _ in range(runs):
        for reader, seconds in seen.items():
            started = time.perf_counter()
            read(bench, reader, keys).write.format("noop").mode("overwrite").save()
            seconds.append(time.perf_counter() - started)
    spark, pyarrow = (statistics.median(each) for each in seen.values())
    label = "all rows" if share is None else f"{share:>8.2%}"
    print(
        f"{label}  Spark {spark:5.2f} s   pyarrow {pyarrow:5.2f} s   ratio {spark / pyarrow:.2f}",
        flush=True,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, 120_000, vectors=False, file_format="parquet")
    bench.prepare()
    for reader in ("spark", "pyarrow"):
        read(bench, reader, keys_of(bench.rows, 1000)).write.format("noop").mode("overwrite").save()
    for share in SHARES:
        compare(bench, share, parsed.runs)


if __name__ == "__main__":
    main()
