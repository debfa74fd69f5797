"""Values on their way into a column: ANSI cast, lengths, nested NOT NULL (rule 8).

The pairs of types are those of Spark's ``Cast.canANSIStoreAssign``, and strings into numbers,
booleans, dates and timestamps where they parse, as Delta Lake allows. Struct fields are assigned by
name. A value that does not fit raises an error that names column and value, when its row is stored.
"""

from __future__ import annotations

import re
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from spark_jobs.engine.names import find_name
from spark_jobs.engine.older_spark import parsed_type, try_cast
from spark_jobs.errors import AnalysisError, ErrorCode

_DATETIME = (DateType, TimestampType, TimestampNTZType)
_LENGTH = re.compile(r"\s*(var)?char\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE)


def stored(value: Column, given: DataType, wanted: DataType, column: str) -> Column:
    """``value`` of type ``given`` as it is stored in ``column`` of type ``wanted``.

    ``column`` is a path such as ``address.city`` for errors.

    Raises:
        AnalysisError: TYPE_MISMATCH when no value of ``given`` can be stored in ``wanted``.
    """
    if isinstance(given, NullType):
        return F.lit(None).cast(wanted)
    if given == wanted:
        return value
    if isinstance(wanted, StructType) and isinstance(given, StructType):
        return _stored_struct(value, given, wanted, column)
    if isinstance(wanted, ArrayType) and isinstance(given, ArrayType):
        return _stored_array(value, given, wanted, column)
    if isinstance(wanted, MapType) and isinstance(given, MapType):
        return _stored_map(value, given, wanted, column)
    if not _can_store(given, wanted):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"column {column}: a value of type {given.simpleString()} can not be stored as "
            f"{wanted.simpleString()}",
            "Cast the value explicitly.",
        )
    if isinstance(wanted, StringType):
        return value.cast(wanted)
    return _checked_cast(value, wanted, column)


def stored_within_length(value: Column, declared_type: str, column: str) -> Column:
    """A string ``value`` as a column declared ``VARCHAR(n)`` or ``CHAR(n)`` holds it, as in Spark.

    Trailing spaces beyond n are cut, CHAR is padded, a longer value raises VALUE_NOT_STORABLE.
    Other declared types leave the value as it is.
    """
    match = _LENGTH.fullmatch(declared_type)
    if match is None:
        return value
    length = int(match.group(2))
    fits = F.length(F.rtrim(value)) <= length
    cut = F.substring(value, 1, length)
    kept = cut if match.group(1) else F.rpad(cut, length, " ")
    return F.when(value.isNull() | fits, kept).otherwise(
        _raise(ErrorCode.VALUE_NOT_STORABLE, value, f"column {column} {declared_type} can not hold")
    )


def frame_type(declared: str) -> DataType:
    """The type that values of a column declared so have in a frame: no CHAR, no VARCHAR."""
    return _without_length(parsed_type(declared))


def _without_length(type_: DataType) -> DataType:
    if isinstance(type_, CharType | VarcharType):
        return StringType()
    if isinstance(type_, StructType):
        fields = [(field, _without_length(field.dataType)) for field in type_]
        return StructType([StructField(f.name, each, f.nullable) for f, each in fields])
    if isinstance(type_, ArrayType):
        return ArrayType(_without_length(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        return MapType(
            _without_length(type_.keyType),
            _without_length(type_.valueType),
            type_.valueContainsNull,
        )
    return type_


def _can_store(given: DataType, wanted: DataType) -> bool:
    if isinstance(given, NumericType) and isinstance(wanted, NumericType):
        return True
    if isinstance(given, AtomicType) and isinstance(wanted, StringType):
        return True
    if isinstance(given, _DATETIME) and isinstance(wanted, _DATETIME):
        return True
    return isinstance(given, StringType) and isinstance(
        wanted, (NumericType, BooleanType, *_DATETIME)
    )


def _checked_cast(value: Column, wanted: DataType, column: str) -> Column:
    cast = try_cast(value, wanted)
    problem = f"column {column} {wanted.simpleString()} can not hold"
    return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(
        _raise(ErrorCode.VALUE_NOT_STORABLE, value, problem)
    )


def _raise(code: ErrorCode, value: Column | None, problem: str) -> Column:
    """A column that fails with a ``JobError`` marker (see ``errors.from_marker``)."""
    message = F.lit(problem)
    if value is not None:
        message = F.concat(message, F.lit(" the value "), F.substring(value.cast("string"), 1, 100))
    document = F.to_json(
        F.struct(
            F.lit(code.name).alias("code"), message.alias("message"), F.lit("").alias("remedy")
        )
    )
    escaped = F.replace(document, F.lit("<"), F.lit("\\u003c"))
    escaped = F.replace(escaped, F.lit(">"), F.lit("\\u003e"))
    return F.raise_error(F.concat(F.lit("<<job-error "), escaped, F.lit(">>")))


def _stored_struct(value: Column, given: StructType, wanted: StructType, column: str) -> Column:
    names = given.fieldNames()
    for name in names:
        if find_name(name, wanted.fieldNames()) is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"column {column} has no field {name}",
                f"Its fields are: {', '.join(wanted.fieldNames())}.",
            )
    fields = [_stored_field(value, given, field, column) for field in wanted.fields]
    return F.when(value.isNotNull(), F.struct(*fields))


def _stored_field(value: Column, given: StructType, field: StructField, column: str) -> Column:
    path = f"{column}.{field.name}"
    name = find_name(field.name, given.fieldNames())
    if name is None:
        raise AnalysisError(
            ErrorCode.COLUMN_NOT_FOUND,
            f"column {column}: the value has no field {field.name}",
            f"Its fields are: {', '.join(given.fieldNames())}.",
        )
    item = stored(value.getField(name), given[name].dataType, field.dataType, path)
    return _not_null(item, path, field.nullable).alias(field.name)


def _stored_array(value: Column, given: ArrayType, wanted: ArrayType, column: str) -> Column:
    def item(element: Column) -> Column:
        path = f"{column}.element"
        return _not_null(
            stored(element, given.elementType, wanted.elementType, path), path, wanted.containsNull
        )

    return F.transform(value, item)


def _stored_map(value: Column, given: MapType, wanted: MapType, column: str) -> Column:
    key = partial(stored, given=given.keyType, wanted=wanted.keyType, column=f"{column}.key")
    item = partial(stored, given=given.valueType, wanted=wanted.valueType, column=f"{column}.value")
    keys = F.transform_keys(value, lambda k, _: key(k))
    return F.transform_values(keys, lambda _, v: item(v))


def _not_null(value: Column, path: str, nullable: bool) -> Column:
    if nullable:
        return value
    problem = f"field {path} is NOT NULL but would become NULL"
    return F.when(value.isNotNull(), value).otherwise(
        _raise(ErrorCode.NOT_NULL_VIOLATION, None, problem)
    )
