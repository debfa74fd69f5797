"""Spark's types as Arrow types, with timestamps in UTC, on every version of PySpark."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

# PySpark before 4.3 always uses UTC and has no such parameter.
_ZONED: Final = "timezone" in inspect.signature(to_arrow_type).parameters
_ZONE: Final[dict[str, Any]] = {"timezone": "UTC"} if _ZONED else {}


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of values of ``kind``.

    Raises:
        PySparkTypeError: Arrow has no such type.
    """
    return to_arrow_type(kind, **_ZONE)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows of ``schema``; raises as ``arrow_type``."""
    return to_arrow_schema(schema, **_ZONE)
