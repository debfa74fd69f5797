"""Keeps Spark from filtering in its file readers by what ``evidence`` does not list. Driver only.

Spark hands its Parquet reader whatever conditions it can express, and the reader leaves out row
groups and pages by bounds, dictionaries and bloom filters. It does so for all types, but without
NaN and with two unequal zeros; and a constant finer than the file's unit of time is rounded. An
expression is not handed over: so a column that rows have to decide becomes one.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.spi.evidence import reader_decides

_FILTER_PUSHDOWN: Final = "spark.sql.parquet.filterPushdown"
# Conditions on nested fields, and all those on ORC files, are left to the rows.
READER_SETTINGS: Final = {
    _FILTER_PUSHDOWN: "true",
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "",
    "spark.sql.orc.filterPushdown": "false",
}


def decided_by_rows(frame: DataFrame) -> DataFrame:
    """``frame``, which reads files, so that its reader filters only by what is listed."""
    if not any(map(_is_handed_over, frame.schema)):
        return frame
    return frame.select(*map(read_column, frame.schema))


def read_column(field: StructField, *, has_microseconds: bool = False) -> Column:
    """The column ``field`` of a frame that reads files, as ``decided_by_rows`` has it.

    ``has_microseconds``: the files are known to store its times in them.
    """
    column = F.col(quote(field.name))
    if not _is_handed_over(field, has_microseconds=has_microseconds):
        return column
    # Both operands are the same, which Spark does not look for.
    return F.coalesce(column, column).alias(field.name, metadata=field.metadata)


def leave_all_to_rows(spark: SparkSession) -> None:
    """For a statement that reads files as the session's catalog or a path names them."""
    spark.conf.set(_FILTER_PUSHDOWN, "false")


def _is_handed_over(field: StructField, *, has_microseconds: bool = False) -> bool:
    """Whether Spark hands over conditions that the reader must not decide."""
    kind = field.dataType.simpleString()
    is_nested = isinstance(field.dataType, ArrayType | MapType | StructType)
    return not is_nested and not reader_decides(kind, has_microseconds=has_microseconds)
