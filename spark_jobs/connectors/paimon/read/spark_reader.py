"""Reads target rows with Spark's vectorised Parquet reader. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.read.live_rows import VectorOfFile, without_deleted
from spark_jobs.connectors.paimon.read.spark_columns import columns_by_schema
from spark_jobs.connectors.paimon.read.spark_schema import spark_schema
from spark_jobs.connectors.paimon.read.stored_columns import StoredColumns
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.identifiers import quote
from spark_jobs.spark_reads.parquet_rows import ORDINAL, POSITION, parquet_rows, row_id
from spark_jobs.spi.tables import PlannedFile, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_by_spark(
    spark: SparkSession,
    table: TableHandle,
    files: Sequence[PlannedFile],
    columns: Sequence[str],
    stored: StoredColumns,
    prefix: str,
) -> DataFrame:
    """The rows of ``files`` with ``columns`` and the row id.

    The driver compares the files with their schemas by ``stored``, and executors read deletion
    vectors from its file system; ``prefix`` turns its paths into Spark's.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged, or does not hold what its
            schema says; METADATA_UNREADABLE: the driver may not read it.
        InternalError: STORAGE_UNAVAILABLE.
    """
    if not files:
        empty = spark.createDataFrame([], spark_schema(table))
        return empty.select(*map(quote, columns), row_id(F.lit(0), F.lit(0)))
    groups = columns_by_schema(table, files, columns)
    read = []
    for group in groups:
        exact = stored.require([file.path for file in group.files], group.recorded)
        read.append(replace(group, exact=exact))
    located = parquet_rows(spark, files, read, prefix)
    live = without_deleted(located, ORDINAL, POSITION, _vectors(table, files), stored.filesystem)
    return live.select(*map(quote, columns), row_id(F.col(ORDINAL), F.col(POSITION)))


def _vectors(table: TableHandle, files: Sequence[PlannedFile]) -> list[VectorOfFile]:
    vectors = pinned_table(table).vectors
    return [
        VectorOfFile(file, vectors[file.path.rpartition("/")[2]])
        for file in files
        if file.deleted_row_count
    ]
