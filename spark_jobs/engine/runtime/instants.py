"""Values of Spark as Python has them, times exactly.

PySpark's own are in the zone of the machine, where an hour may occur twice.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, TimestampType

from spark_jobs.contract.sql_text import quote

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def python_columns(frame: DataFrame) -> list[Column]:
    """The columns of ``frame`` in a form that ``python_value`` takes, under their own names."""
    return [
        F.unix_micros(quote(field.name)).alias(field.name)
        if isinstance(field.dataType, TimestampType)
        else F.col(quote(field.name))
        for field in frame.schema
    ]


def python_value(value: Any, kind: DataType) -> Any:
    """A value of a column that had the type ``kind``; a TIMESTAMP is in UTC."""
    if value is not None and isinstance(kind, TimestampType):
        return _EPOCH + dt.timedelta(microseconds=value)
    return value
