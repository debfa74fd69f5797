"""Time from the statement to the plan that Spark gets, for a table of many files.

``.venv-spark/bin/python -m benchmarks.planning``: 20,000 files in 1,000 partitions, and a source of
one day. Prints the seconds of each phase, and how many files were left for Spark.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon import library
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    MergeCase,
    MergeSpec,
    UpdateAction,
)
from spark_jobs.files.statistics import ColumnStatistics
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector

NAME = TableName("bench", "many_files")
FIRST_DAY = dt.date(2020, 1, 1)
ROWS = 10


def create_table(warehouse: Path) -> Connector:
    """A table with columns day (partition), id and n, and the connector to it."""
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    columns = (ColumnSpec("day", "DATE"), ColumnSpec("id", "BIGINT"), ColumnSpec("n", "INT"))
    connector.metadata.create_table(NAME, CreateTableSpec(columns, partition_keys=("day",)))
    return connector


def fill_table(connector: Connector, days: int, files_per_day: int) -> None:
    """Add days of files in one commit; a file has ids of its own, ten of them.

    All files of a day are one parquet file under several names, so only the first one of a day
    holds the ids that the statistics tell; that is enough for statements on these.
    """
    from pypaimon.write.commit_message import CommitMessage

    table = connector.metadata.load_table(NAME).native.table
    messages = []
    for number in range(days):
        day = FIRST_DAY + dt.timedelta(days=number)
        folder = Path(library.bucket_directory(table, (day,), 0))
        folder.mkdir(parents=True, exist_ok=True)
        files = [_file(table, folder, day, file) for file in range(files_per_day)]
        messages.append(CommitMessage((day,), 0, files))
    commit = table.new_batch_write_builder().new_commit()
    commit.commit(messages)
    commit.close()


def _file(table: object, folder: Path, day: dt.date, number: int) -> object:
    path = folder / f"data-{day}-{number}.parquet"
    first = folder / f"data-{day}-0.parquet"
    if path == first:
        rows = [{"day": day, "id": each, "n": 0} for each in range(ROWS)]
        pq.write_table(pa.Table.from_pylist(rows, library.arrow_schema(table)), first)
    else:
        os.link(first, path)
    ids = range(number * ROWS, (number + 1) * ROWS)
    statistics = {
        "day": ColumnStatistics(day, day, 0),
        "id": ColumnStatistics(ids[0], ids[-1], 0),
        "n": ColumnStatistics(0, 0, 0),
    }
    return library.new_data_file(table, str(path), path.stat().st_size, ROWS, statistics)


def update_one_day(spark: SparkSession, warehouse: Path, operation_id: str) -> JobResult:
    """MERGE a source of one day and three keys, two of which the day's first file holds."""
    query = f"SELECT DATE '{FIRST_DAY}' AS day, id FROM VALUES (1L), (2L), (-1L) AS s(id)"
    action = UpdateAction((Assignment("n", "t.n + 1"),))
    spec = MergeSpec(
        "s", "t.day = s.day AND t.id = s.id", (MergeCase("matched", action),), "t", "s"
    )
    catalog = CatalogSpec("paimon", str(warehouse))
    return run(JobRequest(operation_id, NAME, catalog, spec, (SqlSource("s", query),)), spark)


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
