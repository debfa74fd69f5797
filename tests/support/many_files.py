"""A Paimon table of very many files, and a statement that needs one of them."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon.library import data_files, table_schema
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
from spark_jobs.datafiles.statistics import ColumnStatistics
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


def fill_table(connector: Connector, days: int, files_per_day: int, commits: int = 1) -> None:
    """Add days of files in some commits; a file has ids of its own, ten of them.

    All files of a day are one parquet file under several names, so only the first one of a day
    holds the ids that the statistics tell; that is enough for statements on these.
    """
    from pypaimon.write.commit_message import CommitMessage

    table = connector.metadata.load_table(NAME).native.table
    for part in range(commits):
        messages = []
        for number in range(part * days // commits, (part + 1) * days // commits):
            day = FIRST_DAY + dt.timedelta(days=number)
            folder = Path(table_schema.bucket_directory(table, (day,), 0))
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
        pq.write_table(pa.Table.from_pylist(rows, table_schema.arrow_schema(table)), first)
    else:
        os.link(first, path)
    ids = range(number * ROWS, (number + 1) * ROWS)
    statistics = {
        "day": ColumnStatistics(day, day, 0),
        "id": ColumnStatistics(ids[0], ids[-1], 0),
        "n": ColumnStatistics(0, 0, 0),
    }
    return data_files.new_data_file(table, str(path), path.stat().st_size, ROWS, statistics)


def update_days(
    spark: SparkSession, catalog: CatalogSpec | Path, operation_id: str, days: int = 1
) -> JobResult:
    """MERGE a source of some days and three keys each, two of which the day's first file holds.

    A path as ``catalog`` is a warehouse of Paimon.
    """
    query = (
        f"SELECT date_add(DATE '{FIRST_DAY}', CAST(d.id AS INT)) AS day, s.id "
        f"FROM range({days}) d CROSS JOIN VALUES (1L), (2L), (-1L) AS s(id)"
    )
    action = UpdateAction((Assignment("n", "t.n + 1"),))
    spec = MergeSpec(
        "s", "t.day = s.day AND t.id = s.id", (MergeCase("matched", action),), "t", "s"
    )
    if isinstance(catalog, Path):
        catalog = CatalogSpec("paimon", str(catalog))
    return run(JobRequest(operation_id, NAME, catalog, spec, (SqlSource("s", query),)), spark)


@contextmanager
def manifest_reads() -> Iterator[Counter[str]]:
    """How often each manifest is read, by name."""
    from pypaimon.manifest.manifest_file_manager import ManifestFileManager

    read, reads = ManifestFileManager.read, Counter[str]()

    def counted(self: Any, name: str, *arguments: Any, **options: Any) -> Any:
        reads[name] += 1
        return read(self, name, *arguments, **options)

    ManifestFileManager.read = counted
    try:
        yield reads
    finally:
        ManifestFileManager.read = read
