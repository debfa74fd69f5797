"""Full compaction of a bucket with a primary key by this project and by Paimon's Java library.

``python -m benchmarks.compact_keyed [--rows N ...] [--runs N]``, in ``.venv-spark``; needs a JDK,
and Maven once. The bucket is that of ``benchmarks.merge_on_read``: N rows of nine columns on the
highest level, under ten files of level 0 with 1 % of the keys each. This project compacts it in
Spark tasks, Java in one process of its own, which stays warm, as Spark does; each gets a fresh copy
of the table, in turns. Prints the medians, the ratio, the peak memory of Python workers, and
whether both have the same rows; with several sizes, how the memory differs.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import keyed_tables
from benchmarks.comparison import copy_of, session
from benchmarks.comparison import timed as run_timed
from benchmarks.memory import PeakMemory
from benchmarks.merge_on_read import COLUMNS, TABLE, Bench
from spark_jobs.contract.compaction import CompactSpec
from tests.judge.jvm import Server
from tests.judge.toolchain import prepare

_JAVA_OPTIONS = ("-Xmx6g",)


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides on copies of one bucket; ``java`` runs ``WritePaimon``."""

    spark: SparkSession
    bench: Bench
    java: Server

    def ours(self) -> tuple[float, int, tuple[object, ...], str]:
        """Seconds, bytes of the largest Python worker, rows, and what else is worth telling."""
        warehouse = copy_of(self.bench.warehouse)
        with PeakMemory() as memory:
            seconds, result = run_timed(self.spark, warehouse, TABLE, CompactSpec(mode="full"))
        told = f"{dict(result.metrics.seconds)}, {_told(warehouse)}"
        return seconds, memory.largest_worker, _rows_of(warehouse), told

    def theirs(self) -> tuple[float, tuple[object, ...], str]:
        """Seconds, rows, and what else is worth telling."""
        warehouse = copy_of(self.bench.warehouse)
        request = {"mode": "compact", "full": True, "buckets": []}
        started = time.perf_counter()
        self.java.ask(warehouse=str(warehouse), table=str(TABLE), **request)
        seconds = time.perf_counter() - started
        told = _told(warehouse)
        return seconds, _rows_of(warehouse), told


def _told(warehouse: Path) -> str:
    files = [Path(path) for path in keyed_tables.record_files(warehouse, TABLE)]
    return f"{len(files)} files, {sum(each.stat().st_size for each in files) / 2**20:.0f} MiB"


def _rows_of(warehouse: Path) -> tuple[object, ...]:
    files = keyed_tables.record_files(warehouse, TABLE)
    found = keyed_tables.fingerprint(keyed_tables.newest_records(files), COLUMNS)
    shutil.rmtree(warehouse)
    return found


def measure(sides: Sides, runs: int) -> int:
    """Compare both sides; the first round warms up. The bytes of the largest Python worker."""
    ours, theirs, peak = [], [], 0
    for number in range(runs + 1):
        seconds, memory, rows, told = sides.ours()
        java_seconds, java_rows, java_told = sides.theirs()
        peak = max(peak, memory)
        print(
            f"run {number}{' (warm-up)' if number == 0 else ''}: this {seconds:.2f} s {told}; "
            f"Java {java_seconds:.2f} s, {java_told}; "
            f"largest Python worker {memory / 2**20:.0f} MiB",
            flush=True,
        )
        if rows != java_rows:
            raise SystemExit(f"the two sides have different rows: {rows} and {java_rows}")
        if number:
            ours.append(seconds)
            theirs.append(java_seconds)
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(
        f"{sides.bench.rows} rows: this {statistics.median(ours):.2f} s, "
        f"Java {statistics.median(theirs):.2f} s, ratio {ratio:.2f}, "
        f"largest Python worker {peak / 2**20:.0f} MiB, same rows: yes",
        flush=True,
    )
    return peak


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    spark = session()
    java = Server(prepare(), "WritePaimon", options=_JAVA_OPTIONS)
    peaks = []
    for rows in parsed.rows:
        bench = Bench(spark, rows)
        bench.prepare()
        peaks.append(measure(Sides(spark, bench, java), parsed.runs))
    java.close()
    if len(peaks) > 1:
        print(f"memory of Python workers: the most is {max(peaks) / min(peaks):.2f} of the least")


if __name__ == "__main__":
    main()
