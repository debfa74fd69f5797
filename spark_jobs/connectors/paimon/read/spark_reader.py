"""Reads target rows with Spark's vectorised Parquet reader. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.format.vectors import read_vector
from spark_jobs.connectors.paimon.read.spark_columns import columns_by_schema
from spark_jobs.connectors.paimon.read.spark_schema import spark_schema
from spark_jobs.connectors.paimon.read.stored_columns import StoredColumns
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.sql_text import quote
from spark_jobs.spark_reads.mapped_columns import ReadColumns
from spark_jobs.spark_reads.marked_rows import without_marked
from spark_jobs.spark_reads.parquet_rows import ORDINAL, POSITION, parquet_rows, row_id
from spark_jobs.spi.tables import PlannedFile, TableHandle

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import SparkSession


def files_for_spark(
    table: TableHandle,
    files: Sequence[PlannedFile],
    columns: Sequence[str],
    stored: StoredColumns,
) -> list[ReadColumns]:
    """How to read ``columns`` from those of ``files``, which are parquet, that Spark can read.

    The driver compares the files with their schemas by ``stored``.

    Raises:
        NotSupportedError: a file does not hold what its schema says; names file and column.
        CatalogError: DATA_FILE_UNREADABLE: a file is missing or damaged; METADATA_UNREADABLE: the
            driver may not read it.
        InternalError: STORAGE_UNAVAILABLE.
    """
    readable = []
    for group in columns_by_schema(table, files, columns):
        paths = stored.for_spark([file.path for file in group.files], group.recorded)
        chosen = [file for file in group.files if file.path in paths]
        if chosen:
            exact = stored.exact([file.path for file in chosen], group.recorded)
            readable.append(replace(group, files=chosen, exact=exact))
    return readable


def read_by_spark(
    spark: SparkSession,
    table: TableHandle,
    groups: Sequence[ReadColumns],
    columns: Sequence[str],
    filesystem: pafs.FileSystem,
    prefix: str,
) -> DataFrame:
    """The rows of the files of ``groups`` with ``columns`` and the row id.

    Executors read deletion vectors from ``filesystem``; ``prefix`` turns its paths into Spark's.
    """
    files = [file for group in groups for file in group.files]
    if not files:
        empty = spark.createDataFrame([], spark_schema(table))
        return empty.select(*map(quote, columns), row_id(F.lit(0), F.lit(0)))
    located = parquet_rows(spark, files, groups, prefix)
    known = pinned_table(table).files.vectors
    marked = {file.ordinal: file.path for file in files if file.deleted_row_count}
    vectors = {each: known[path.rpartition("/")[2]] for each, path in marked.items()}
    live = without_marked(located, files, vectors, partial(read_vector, filesystem))
    return live.select(*map(quote, columns), row_id(F.col(ORDINAL), F.col(POSITION)))
