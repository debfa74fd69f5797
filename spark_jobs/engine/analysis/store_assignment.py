"""Store assignment: ANSI casts, string lengths, nested NOT NULL (rule 8).

The allowed pairs of types are those of Spark's ``Cast.canANSIStoreAssign``. As in Delta Lake,
strings that parse are also stored as numbers, booleans, dates and timestamps. Struct fields are
assigned by name. A value that does not fit raises an error when its row is stored; the error names
the column and the value.
"""

from __future__ import annotations

from dataclasses import dataclass

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

from spark_jobs.engine.runtime.names import find_name
from spark_jobs.engine.runtime.older_spark import parsed_type, try_cast
from spark_jobs.errors import AnalysisError, ErrorCode

_DATETIME = (DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True, slots=True)
class ErrorLocation:
    """Where a value goes, for errors: the clause, and a column or a path such as ``a.city``."""

    clause: str
    path: str

    def __str__(self) -> str:
        return f"{self.clause}: column {self.path}"

    def below(self, name: str) -> ErrorLocation:
        """The location of a field, ``element``, ``key`` or ``value``."""
        return ErrorLocation(self.clause, f"{self.path}.{name}")


def stored(value: Column, given: DataType, wanted: DataType, location: ErrorLocation) -> Column:
    """``value`` of type ``given`` as it is stored in a column declared as ``wanted``.

    ``VARCHAR(n)`` and ``CHAR(n)`` work as in Spark: trailing spaces beyond n are cut, CHAR is
    padded, and a longer value raises VALUE_NOT_STORABLE.

    Raises:
        AnalysisError: TYPE_MISMATCH if no value of ``given`` can be stored; COLUMN_NOT_FOUND or
            AMBIGUOUS_REFERENCE if the fields of a struct differ.
    """
    if isinstance(given, NullType):
        return F.lit(None).cast(_without_length(wanted))
    if given == wanted:
        return value
    if isinstance(wanted, CharType | VarcharType):
        return _within_length(stored(value, given, StringType(), location), wanted, location)
    if isinstance(wanted, StructType) and isinstance(given, StructType):
        return _stored_struct(value, given, wanted, location)
    if isinstance(wanted, ArrayType) and isinstance(given, ArrayType):
        return _stored_array(value, given, wanted, location)
    if isinstance(wanted, MapType) and isinstance(given, MapType):
        return _stored_map(value, given, wanted, location)
    if not _can_store(given, wanted):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"{location}: a value of type {given.simpleString()} cannot be stored as "
            f"{wanted.simpleString()}",
            "Cast the value explicitly.",
        )
    if isinstance(wanted, StringType):
        return value.cast(wanted)
    return _checked_cast(value, wanted, location)


def require_storable(given: DataType, wanted: DataType, location: ErrorLocation) -> None:
    """Check only the types.

    Raises:
        AnalysisError: as ``stored``.
    """
    if not isinstance(given, NullType) and given != wanted:
        stored(F.lit(None), given, wanted, location)


def _within_length(
    value: Column, wanted: CharType | VarcharType, location: ErrorLocation
) -> Column:
    fits = F.length(F.rtrim(value)) <= wanted.length
    kept = F.substring(value, 1, wanted.length)
    if isinstance(wanted, CharType):
        kept = F.rpad(kept, wanted.length, " ")
    return F.when(value.isNull() | fits, kept).otherwise(_not_storable(value, wanted, location))


def frame_type(declared: str) -> DataType:
    """The type in a frame of a column declared as ``declared``: STRING for CHAR and VARCHAR."""
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


def _checked_cast(value: Column, wanted: DataType, location: ErrorLocation) -> Column:
    cast = try_cast(value, wanted)
    return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(
        _not_storable(value, wanted, location)
    )


def _not_storable(value: Column, wanted: DataType, location: ErrorLocation) -> Column:
    problem = F.lit(f"{location} {wanted.simpleString()} cannot hold the value ")
    shown = F.substring(value.cast("string"), 1, 100)
    return _raise(
        ErrorCode.VALUE_NOT_STORABLE,
        F.concat(problem, shown),
        "Convert the value in the statement, or filter such rows out.",
    )


def _raise(code: ErrorCode, message: Column, remedy: str) -> Column:
    """A column that fails with a ``JobError`` marker (see ``errors.from_marker``)."""
    document = F.to_json(
        F.struct(
            F.lit(code.name).alias("code"), message.alias("message"), F.lit(remedy).alias("remedy")
        )
    )
    escaped = F.replace(document, F.lit("<"), F.lit("\\u003c"))
    escaped = F.replace(escaped, F.lit(">"), F.lit("\\u003e"))
    return F.raise_error(F.concat(F.lit("<<job-error "), escaped, F.lit(">>")))


def _stored_struct(
    value: Column, given: StructType, wanted: StructType, location: ErrorLocation
) -> Column:
    for name in given.fieldNames():
        if find_name(name, wanted.fieldNames()) is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{location} has no field {name}",
                f"Its fields are: {', '.join(wanted.fieldNames())}.",
            )
    fields = [_stored_field(value, given, field, location) for field in wanted.fields]
    return F.when(value.isNotNull(), F.struct(*fields))


def _stored_field(
    value: Column, given: StructType, field: StructField, location: ErrorLocation
) -> Column:
    found = [name for name in given.fieldNames() if name.lower() == field.name.lower()]
    if len(found) != 1:
        raise AnalysisError(
            ErrorCode.AMBIGUOUS_REFERENCE if found else ErrorCode.COLUMN_NOT_FOUND,
            f"{location}: the value has {len(found) or 'no'} field{'s' * bool(found)} {field.name}",
            f"Its fields are: {', '.join(given.fieldNames())}.",
        )
    below = location.below(field.name)
    item = stored(value.getField(found[0]), given[found[0]].dataType, field.dataType, below)
    return _not_null(item, below, field.nullable).alias(field.name)


def _stored_array(
    value: Column, given: ArrayType, wanted: ArrayType, location: ErrorLocation
) -> Column:
    below = location.below("element")

    def item(element: Column) -> Column:
        new = stored(element, given.elementType, wanted.elementType, below)
        return _not_null(new, below, wanted.containsNull)

    return F.transform(value, item)


def _stored_map(value: Column, given: MapType, wanted: MapType, location: ErrorLocation) -> Column:
    def key(old: Column, _: Column) -> Column:
        return stored(old, given.keyType, wanted.keyType, location.below("key"))

    def item(_: Column, old: Column) -> Column:
        below = location.below("value")
        new = stored(old, given.valueType, wanted.valueType, below)
        return _not_null(new, below, wanted.valueContainsNull)

    return F.transform_values(F.transform_keys(value, key), item)


def _not_null(value: Column, location: ErrorLocation, nullable: bool) -> Column:
    if nullable:
        return value
    problem = f"{location} is NOT NULL, but would become NULL"
    remedy = "Give it a value, or filter such rows out."
    return F.when(value.isNotNull(), value).otherwise(
        _raise(ErrorCode.NOT_NULL_VIOLATION, F.lit(problem), remedy)
    )
