"""Values of Spark's types as JSON values. Driver only.

Numbers and booleans stay what they are. What JSON lacks becomes text, as Spark's CAST writes it;
bytes become base64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

_AS_THEY_ARE: Final = (BooleanType, IntegralType, DoubleType, StringType)


def json_frame(frame: DataFrame) -> DataFrame:
    """The same rows, with columns by position that are collected for ``json_value``."""
    types = [field.dataType for field in frame.schema]
    names = [f"c{position}" for position in range(len(types))]
    columns = [_json(F.col(name), type_) for name, type_ in zip(names, types, strict=True)]
    return frame.toDF(*names).select(
        *[column.alias(name) for name, column in zip(names, columns, strict=True)]
    )


def json_value(value: Any) -> Any:
    """A collected value of such a column; NaN and the infinities are text."""
    if isinstance(value, Row):
        return {name: json_value(each) for name, each in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return {key: json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def json_text(column: Column, type_: DataType, name: str) -> Column:
    """The column as the text ``"name":value``; timestamps are in UTC, with ``Z``."""
    field = F.struct(_json(column, type_, _utc).alias(name))
    text = F.to_json(field, {"ignoreNullFields": "false"})
    return F.substr(text, F.lit(2), F.length(text) - 2)


def csv_column(name: str, type_: DataType) -> Column:
    """The column ``name`` as CSV files have it; the type is not nested."""
    if isinstance(type_, BooleanType | IntegralType):
        return F.col(name)
    if isinstance(type_, TimestampType):
        return F.expr(_csv_time(name)).alias(name)
    return _text(F.col(name), type_).alias(name)


def _csv_time(name: str) -> str:
    """The local time, or the time in UTC with ``Z`` where readers take that for another instant.

    A local time that occurs twice is read as the earlier instant. Year 0 is not read at all.
    """
    text = f"CAST({name} AS STRING)"
    is_clear = f"TRY_CAST({text} AS TIMESTAMP) = {name} AND year({name}) BETWEEN 1 AND 9999"
    # Intervals multiply without rounding.
    in_utc = (
        f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + unix_micros({name}) * INTERVAL '0.000001' SECOND"
    )
    return f"CASE WHEN {is_clear} THEN {text} ELSE concat(CAST({in_utc} AS STRING), 'Z') END"


def is_nested(type_: DataType) -> bool:
    """Whether values of a type have parts."""
    return isinstance(type_, ArrayType | MapType | StructType)


def _json(
    column: Column, type_: DataType, timed: Callable[[Column], Column] | None = None
) -> Column:
    """``timed``: what a timestamp becomes, if not its text in the session's time zone."""
    if isinstance(type_, _AS_THEY_ARE):
        return column
    if isinstance(type_, FloatType):
        # Through text, or else 0.1 would be 0.10000000149011612.
        return column.cast("string").cast("double")
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return F.transform(column, lambda each: _json(each, element, timed))
    if isinstance(type_, MapType):
        key, value = type_.keyType, type_.valueType
        named = F.transform_keys(column, lambda each, _: _text(each, key, timed))
        return F.transform_values(named, lambda _, each: _json(each, value, timed))
    if isinstance(type_, StructType):
        fields = [
            _json(column.getField(field.name), field.dataType, timed).alias(field.name)
            for field in type_
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    return _text(column, type_, timed)


def _text(
    column: Column, type_: DataType, timed: Callable[[Column], Column] | None = None
) -> Column:
    if isinstance(type_, BinaryType):
        # Some releases of Spark break the lines of base64.
        return F.regexp_replace(F.base64(column), r"\s", "")
    if timed is not None and isinstance(type_, TimestampType):
        return timed(column)
    return column.cast("string")


def _utc(column: Column) -> Column:
    # Intervals multiply without rounding.
    seconds = F.unix_micros(column) * F.expr("INTERVAL '0.000001' SECOND")
    return F.concat(
        (F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + seconds).cast("string"), F.lit("Z")
    )
