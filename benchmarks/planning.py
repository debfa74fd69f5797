"""Time from the statement to the plan that Spark gets, for a table of many files.

``.venv-spark/bin/python -m benchmarks.planning``: 20,000 files in 1,000 partitions, and a source of
one day. Prints the seconds of each phase, and how many files were left for Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.many_files import create_table, fill_table, update_one_day


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--files-per-day", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        fill_table(create_table(Path(folder)), parsed.days, parsed.files_per_day)
        for number in range(parsed.runs):
            started = time.monotonic()
            metrics = update_one_day(spark, Path(folder), f"run-{number}").metrics
            seconds = time.monotonic() - started
            print(f"run {number + 1}: {metrics.files_scanned} of {metrics.files_total} files left")
            for phase, spent in metrics.seconds.items():
                print(f"  {phase:<10} {spent:6.2f} s")
            print(f"  {'all':<10} {seconds:6.2f} s")
    spark.stop()


if __name__ == "__main__":
    main()
