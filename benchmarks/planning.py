"""Time and memory of the driver, for tables of ever more files.

``.venv-spark/bin/python -m benchmarks.planning [--days 2500,5000,10000] [--files-per-day 20]``: the
last table has 200,000 files in 10,000 partitions, made in 20 commits; the source has ten days, of
which each needs one file. Prints the seconds of each phase, how much the memory of the driver's
Python grew at its peak, how many files were left for Spark, and how often a manifest was read.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.many_files import create_table, fill_table, manifest_reads, update_days

_COMMITS = 20
_TOUCHED = 10


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", default="2500,5000,10000")
    parser.add_argument("--files-per-day", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    for days in map(int, parsed.days.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            fill_table(create_table(Path(folder)), days, parsed.files_per_day, _COMMITS)
            print(f"{days * parsed.files_per_day:,} files in {days:,} partitions")
            for number in range(parsed.runs):
                _measure(spark, Path(folder), number)
    spark.stop()


def _measure(spark: SparkSession, folder: Path, number: int) -> None:
    gc.collect()
    before = _forget_peak()
    started = time.monotonic()
    with manifest_reads() as reads:
        result = update_days(spark, folder, f"run-{number}", _TOUCHED)
    seconds = time.monotonic() - started
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    metrics = result.metrics
    phases = ", ".join(f"{phase} {spent:.2f}" for phase, spent in metrics.seconds.items())
    print(
        f"  run {number + 1}: {seconds:.2f} s ({phases}), memory +{_status('VmHWM') - before:.0f} "
        f"MiB, {metrics.files_scanned} of {metrics.files_total} files left, {len(reads)} manifests "
        f"read {max(reads.values())} times at most",
        flush=True,
    )


def _forget_peak() -> float:
    """Let the peak of this process's memory begin anew; what is resident now, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


if __name__ == "__main__":
    main()
