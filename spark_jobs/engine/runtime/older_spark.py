"""Replacements for what PySpark 3.5 lacks in Python."""

from __future__ import annotations

import functools
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import DataType

from spark_jobs.arrow_types import arrow_schema
from spark_jobs.engine.runtime.java_names import java_class, scala_object

_SQL: Final = "org.apache.spark.sql"


@functools.cache
def parsed_type(ddl: str) -> DataType:
    """The type that ``ddl`` names, parsed by Spark once: ``DataType.fromDDL`` of PySpark 4."""
    if hasattr(DataType, "fromDDL"):
        return DataType.fromDDL(ddl)
    parsed: DataType = T._parse_datatype_string(ddl)  # noqa: SLF001
    return parsed


def column_of_expression(spark: SparkSession, expression: Any) -> Column:
    """A Catalyst expression as a column of the frame that it was analysed on."""
    if hasattr(DataType, "fromDDL"):
        return Column(java_class(spark, f"{_SQL}.classic.ExpressionUtils").column(expression))
    return Column(java_class(spark, f"{_SQL}.Column")(expression))


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """An analysed plan of Catalyst as a frame."""
    package = f"{_SQL}.classic" if hasattr(DataType, "fromDDL") else _SQL
    datasets = scala_object(spark, f"{package}.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


def collected_as_arrow(frame: DataFrame) -> pa.Table:
    """All rows of ``frame``, on the driver: ``DataFrame.toArrow`` of PySpark 4."""
    if hasattr(DataFrame, "toArrow"):
        return frame.toArrow()
    old: Any = frame
    return pa.Table.from_batches(old._collect_as_arrow(), arrow_schema(frame.schema))  # noqa: SLF001


def is_spark_4(spark: SparkSession) -> bool:
    """Whether Spark is not 3.5, but newer."""
    return int(spark.version.partition(".")[0]) > 3


def error_condition(error: PySparkException) -> str:
    """Spark's name for an error, such as ``UNRESOLVED_COLUMN.WITH_SUGGESTION``; may be empty."""
    get = getattr(error, "getCondition", None) or error.getErrorClass
    return get() or ""
