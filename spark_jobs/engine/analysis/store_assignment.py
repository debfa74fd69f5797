"""Store assignment: ANSI casts, string lengths, nested NOT NULL (rule 8).

The allowed pairs of types are those of ``spark_jobs.contract.store_assignment``. Struct fields are
assigned by name. A value that does not fit raises an error when its row is stored; the error names
the column and the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
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

from spark_jobs.contract import store_assignment
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.runtime.sql_text import find_name, named, text_literal, type_text
from spark_jobs.errors import AnalysisError, ErrorCode, job_mark, marker_ends

_FAMILIES: Final[Mapping[type[DataType], str]] = {
    NumericType: store_assignment.NUMBER,
    StringType: store_assignment.STRING,
    BooleanType: store_assignment.BOOLEAN,
    **dict.fromkeys((DateType, TimestampType, TimestampNTZType), store_assignment.TIME),
    BinaryType: store_assignment.BINARY,
    AtomicType: store_assignment.OTHER,
}


@dataclass(frozen=True, slots=True)
class ErrorLocation:
    """Where a value goes, for errors: the clause, and a column or a path such as ``a.city``.

    ``depth`` counts the parts of the path below the column.
    """

    clause: str
    path: str
    depth: int = 0

    def __str__(self) -> str:
        return f"{self.clause}: column {self.path}"

    def below(self, name: str) -> ErrorLocation:
        """The location of a field, ``element``, ``key`` or ``value``."""
        return ErrorLocation(self.clause, f"{self.path}.{name}", self.depth + 1)


def stored(value: str, given: DataType, wanted: DataType, location: ErrorLocation) -> str:
    """``value`` of type ``given`` as it is stored in a column declared as ``wanted``, as SQL.

    ``value`` is the name of a column, because the text has it several times.
    ``VARCHAR(n)`` and ``CHAR(n)`` work as in Spark: trailing spaces beyond n are cut, CHAR is
    padded, and a longer value raises VALUE_NOT_STORABLE.

    Raises:
        AnalysisError: TYPE_MISMATCH if no value of ``given`` can be stored; COLUMN_NOT_FOUND or
            AMBIGUOUS_REFERENCE if the fields of a struct differ.
    """
    if isinstance(given, NullType):
        # Not a literal NULL: the value is evaluated, and may raise an error.
        return f"CAST({value} AS {type_text(_without_length(wanted))})"
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
        return f"CAST({value} AS {type_text(wanted)})"
    return _checked_cast(value, wanted, location)


def require_storable(given: DataType, wanted: DataType, location: ErrorLocation) -> None:
    """Check only the types.

    Raises:
        AnalysisError: as ``stored``.
    """
    if not isinstance(given, NullType) and given != wanted:
        stored("NULL", given, wanted, location)


def _within_length(value: str, wanted: CharType | VarcharType, location: ErrorLocation) -> str:
    fits = f"{value} IS NULL OR length(rtrim({value})) <= {wanted.length}"
    cut = f"substring({value}, 1, {wanted.length})"
    if isinstance(wanted, CharType):
        cut = f"rpad({cut}, {wanted.length}, ' ')"
    return f"CASE WHEN {fits} THEN {cut} ELSE {_not_storable(value, wanted, location)} END"


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
    families = [_family(each) for each in (given, wanted)]
    return None not in families and store_assignment.is_storable(*map(str, families))


def _family(type_: DataType) -> str | None:
    return next((family for kind, family in _FAMILIES.items() if isinstance(type_, kind)), None)


def _checked_cast(value: str, wanted: DataType, location: ErrorLocation) -> str:
    cast = f"TRY_CAST({value} AS {type_text(wanted)})"
    fits = f"{value} IS NULL OR {cast} IS NOT NULL"
    return f"CASE WHEN {fits} THEN {cast} ELSE {_not_storable(value, wanted, location)} END"


def _not_storable(value: str, wanted: DataType, location: ErrorLocation) -> str:
    problem = text_literal(f"{location} {wanted.simpleString()} cannot hold the value ")
    shown = f"substring(CAST({value} AS STRING), 1, 100)"
    return raised(
        ErrorCode.VALUE_NOT_STORABLE,
        f"concat({problem}, {shown})",
        "Convert the value in the statement, or filter such rows out.",
    )


def raised(code: ErrorCode, message: str, remedy: str) -> str:
    """An expression that fails with a ``JobError`` marker (see ``errors.from_marker``)."""
    parts = {"code": text_literal(code.name), "message": message, "remedy": text_literal(remedy)}
    items = ", ".join(f"'{name}', {value}" for name, value in parts.items())
    document = f"to_json(named_struct({items}))"
    for character, escaped in (("<", "\\u003c"), (">", "\\u003e")):
        document = f"replace({document}, '{character}', {text_literal(escaped)})"
    start, end = map(text_literal, marker_ends(job_mark()))
    return f"raise_error(concat({start}, {document}, {end}))"


def _stored_struct(
    value: str, given: StructType, wanted: StructType, location: ErrorLocation
) -> str:
    for name in given.fieldNames():
        if find_name(name, wanted.fieldNames()) is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{location} has no field {name}",
                f"Its fields are: {', '.join(wanted.fieldNames())}.",
            )
    fields = ", ".join(_stored_field(value, given, field, location) for field in wanted.fields)
    return f"CASE WHEN {value} IS NOT NULL THEN struct({fields}) END"


def _stored_field(
    value: str, given: StructType, field: StructField, location: ErrorLocation
) -> str:
    matching = [name for name in given.fieldNames() if name.lower() == field.name.lower()]
    if len(matching) != 1:
        raise AnalysisError(
            ErrorCode.AMBIGUOUS_REFERENCE if matching else ErrorCode.COLUMN_NOT_FOUND,
            f"{location}: the value has {len(matching) or 'no'} field{'s' * bool(matching)} "
            f"{field.name}",
            f"Its fields are: {', '.join(given.fieldNames())}.",
        )
    below = location.below(field.name)
    old = f"{value}.{quote(matching[0])}"
    item = stored(old, given[matching[0]].dataType, field.dataType, below)
    return named(_not_null(item, below, field.nullable), field.name)


def _stored_array(value: str, given: ArrayType, wanted: ArrayType, location: ErrorLocation) -> str:
    below, item = location.below("element"), _variable("item", location)
    new = stored(item, given.elementType, wanted.elementType, below)
    return f"transform({value}, {item} -> {_not_null(new, below, wanted.containsNull)})"


def _stored_map(value: str, given: MapType, wanted: MapType, location: ErrorLocation) -> str:
    key, item = _variable("key", location), _variable("item", location)
    new_key = stored(key, given.keyType, wanted.keyType, location.below("key"))
    keys = f"transform_keys({value}, ({key}, {item}) -> {new_key})"
    below = location.below("value")
    new = stored(item, given.valueType, wanted.valueType, below)
    new = _not_null(new, below, wanted.valueContainsNull)
    return f"transform_values({keys}, ({key}, {item}) -> {new})"


def _variable(name: str, location: ErrorLocation) -> str:
    """The name of a lambda's variable, which no enclosing lambda uses."""
    return f"{RESERVED_PREFIX}{name}_{location.depth}"


def _not_null(value: str, location: ErrorLocation, nullable: bool) -> str:
    if nullable:
        return value
    problem = text_literal(f"{location} is NOT NULL, but would become NULL")
    failure = raised(
        ErrorCode.NOT_NULL_VIOLATION, problem, "Give it a value, or filter such rows out."
    )
    return f"coalesce({value}, {failure})"
