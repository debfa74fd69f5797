"""From which share of deleted rows on rewriting a file beats a deletion vector.

``python -m benchmarks.rewrite_share [--rows N] [--runs N]``. For each share of scattered rows of a
table, prints what the DELETE takes when it marks them and when it rewrites the files, what reading
the whole table takes afterwards, and after how many such reads rewriting has paid off.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import uuid
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.comparison import copy_of, session
from benchmarks.merge import TABLE, Bench, enable_vectors
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.run import run

SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
_SCATTERED = "pmod(hash(id), 1000) < {}"


def delete(spark: SparkSession, master: Path, share: float, rewrite_share: float) -> Path:
    """A fresh copy of the table without a share of its rows."""
    warehouse = copy_of(master)
    enable_vectors(warehouse)
    request = JobRequest(
        operation_id=uuid.uuid4().hex,
        target=TABLE,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=DeleteSpec("t", _SCATTERED.format(int(1000 * share))),
        options=JobOptions(rewrite_share=rewrite_share),
    )
    result = run(request, spark)
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    return warehouse


def read(spark: SparkSession, warehouse: Path) -> None:
    """Read all rows and columns as a statement would."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = connector.metadata.load_table(TABLE)
    files = connector.metadata.plan_files(table)
    frame = connector.scan.read(spark, table, files, table.column_names)
    frame.write.format("noop").mode("overwrite").save()


def measure(spark: SparkSession, master: Path, share: float, rewrite: bool) -> tuple[float, float]:
    """Seconds of one DELETE and of one reading afterwards."""
    started = time.perf_counter()
    warehouse = delete(spark, master, share, 0.0 if rewrite else 1.0)
    deleted = time.perf_counter()
    read(spark, warehouse)
    done = time.perf_counter()
    shutil.rmtree(warehouse)
    return deleted - started, done - deleted


def compare(spark: SparkSession, master: Path, share: float, runs: int) -> None:
    """Print the medians of both ways for one share."""
    medians = []
    for rewrite in (False, True):
        seen = [measure(spark, master, share, rewrite) for _ in range(runs)]
        medians.append([statistics.median(each) for each in zip(*seen, strict=True)])
    (mark, read_marked), (rewrite_all, read_rewritten) = medians
    saved = read_marked - read_rewritten
    reads = f"{(rewrite_all - mark) / saved:.1f}" if saved > 0 else "never"
    print(
        f"{share:>5.2f}  mark {mark:5.2f} s, read {read_marked:5.2f} s   "
        f"rewrite {rewrite_all:5.2f} s, read {read_rewritten:5.2f} s   pays off after: {reads}",
        flush=True,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    spark = session()
    bench = Bench(spark, parsed.rows, 120_000, vectors=True, file_format="parquet")
    bench.prepare()
    for rewrite in (False, True):
        measure(spark, bench.master, SHARES[0], rewrite)
    for share in SHARES:
        compare(spark, bench.master, share, parsed.runs)


if __name__ == "__main__":
    main()
