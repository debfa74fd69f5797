"""The schema that a request asks for or a statement needs, and how a table differs. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import (
    IcebergField,
    IcebergType,
    opaque_type,
    parse_fields,
    spark_type,
)
from spark_jobs.connectors.iceberg.library.definitions import evolved_table
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, schema_fields
from spark_jobs.connectors.shared.table.definitions import (
    column_differences,
    default_differences,
    name_differences,
    option_differences,
)
from spark_jobs.contract.checks import require
from spark_jobs.contract.literals import require_literal
from spark_jobs.contract.partition_keys import IDENTITY
from spark_jobs.contract.request import TableName
from spark_jobs.contract.spark_types import SparkType, parse_type
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.transforms import is_known
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.tables import Column

_VERSION: Final = "format-version"
_VERSIONS: Final = ("1", "2", "3")
# The first version whose columns have defaults.
DEFAULTS_SINCE: Final = 3
_PRIMITIVE: Final = {
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "timestamptz"),
    **{name: name for name in ("boolean", "double", "date", "string", "binary")},
    "timestamp_ntz": "timestamp",
}
_FIRST_PARTITION_FIELD: Final = 1000
# Behind the name of the column, as Iceberg's Java names partition fields.
_SUFFIXES: Final = {IDENTITY: "", "truncate": "_trunc"}


def requested_schema(name: TableName, spec: CreateTableSpec) -> dict[str, Any]:
    """The schema that ``spec`` describes, in Iceberg's JSON form.

    The columns of the primary key are its identifier fields.

    Raises:
        NotSupportedError: Iceberg has no such type; names the column.
        RequestError: REQUEST_INVALID: the text of a type is not a type, or a column cannot be in a
            primary key.
    """
    if spec.table_options.get(_VERSION, "2") not in _VERSIONS:
        raise NotSupportedError(
            f"{name}: version {spec.table_options[_VERSION]} of the format is not supported.",
            f"Leave {_VERSION} out, which means version 2, or use {', '.join(_VERSIONS)}.",
        )
    ids = count(1)
    fields = []
    for column in spec.columns:
        kind = iceberg_type(parse_type(column.type), column.name, ids)
        field = {"id": next(ids), "name": column.name, "type": kind}
        field |= {"required": not column.nullable}
        field |= {"doc": column.comment} if column.comment else {}
        fields.append(field | _default(name, spec, column))
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    return {**schema, "identifier-field-ids": list(_identifiers(spec, parse_fields(schema)))}


def _default(name: TableName, spec: CreateTableSpec, column: ColumnSpec) -> dict[str, Any]:
    if column.default is None:
        return {}
    version = spec.table_options.get(_VERSION, "2")
    if int(version) < DEFAULTS_SINCE:
        raise NotSupportedError(
            f"{name}: column {column.name} has a default ({column.default}), which tables of "
            f"version {version} of the format do not have.",
            f"Ask for version {DEFAULTS_SINCE} (option {_VERSION}), or leave the default out.",
        )
    value = require_literal("default", column.default, column.type)
    return {} if value is None else {"write-default": json_value(value)}


def json_value(value: Any) -> Any:
    """A value of ``literal_value`` in JSON, as the specification serializes single values."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat()


def _identifiers(spec: CreateTableSpec, fields: Sequence[IcebergField]) -> Iterator[int]:
    columns = {each.name.lower(): each for each in fields}
    for key in spec.primary_key:
        field = columns[key.lower()]
        require(
            field.required,
            "primary_key",
            f"column {field.name} admits NULL, which an identifier field must not",
            "Make the column NOT NULL.",
        )
        require(
            field.type.is_primitive and field.type.name not in ("float", "double"),
            "primary_key",
            f"column {field.name} is {spark_type(field.type)}, which an identifier field cannot be",
            "Leave it out: FLOAT, DOUBLE and nested types identify no row.",
        )
        yield field.id


def requested_partition(
    spec: CreateTableSpec, schema: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """The partition fields that ``spec`` describes, in Iceberg's JSON form.

    ``schema`` is that of ``requested_schema``. The names are those that Iceberg's Java gives.

    Raises:
        NotSupportedError: a column's type has no such transform; names both.
        RequestError: REQUEST_INVALID: a column has the name of a field.
    """
    columns = {each.name: each for each in parse_fields(schema)}
    names = {each.lower(): each for each in columns}
    partition_fields: list[Mapping[str, Any]] = []
    for key in spec.partitioned_by():
        source = columns[key.column]
        transform = key.transform if key.number is None else f"{key.transform}[{key.number}]"
        if not is_known(source.type.name, transform):
            raise NotSupportedError(
                f"partition_keys: {key}: column {key.column} is {spark_type(source.type)}.",
                f"A column for {key.transform} can be {', '.join(_types_of(transform))}.",
            )
        name = key.column + _SUFFIXES.get(key.transform, f"_{key.transform}")
        require(
            key.transform == IDENTITY or name.lower() not in names,
            "partition_keys",
            f"{key}: its field would be called {name}, as column {names.get(name.lower())} is",
            "Give the column another name.",
        )
        number = _FIRST_PARTITION_FIELD + len(partition_fields)
        partition_fields.append(
            {"source-id": source.id, "field-id": number, "transform": transform, "name": name}
        )
    return partition_fields


def _types_of(transform: str) -> Iterator[str]:
    """The Spark types that a transform takes."""
    for kind in dict.fromkeys((*_PRIMITIVE.values(), "decimal(10, 2)")):
        if is_known(kind, transform):
            yield spark_type(IcebergType(kind)).partition("(")[0]


def iceberg_type(kind: SparkType, column: str, ids: Iterator[int]) -> Any:
    """The type in Iceberg's JSON form, whose nested fields get ``ids``.

    Raises:
        NotSupportedError: Iceberg has no such type; names the column.
    """
    if kind.name == "struct":
        return {
            "type": "struct",
            "fields": [
                {
                    "id": next(ids),
                    "name": field.name,
                    "required": not field.nullable,
                    "type": iceberg_type(field.type, column, ids),
                    **({"doc": field.comment} if field.comment else {}),
                }
                for field in kind.fields
            ],
        }
    if kind.name in ("array", "map"):
        made: dict[str, Any] = {"type": "list" if kind.name == "array" else "map"}
        for field in kind.fields:
            made[f"{field.name}-id"] = next(ids)
            made[field.name] = iceberg_type(field.type, column, ids)
            if field.name != "key":
                made[f"{field.name}-required"] = not field.nullable
        return made
    if kind.name in ("decimal", "dec", "numeric"):
        precision, scale = (*kind.arguments, 0)[:2] if kind.arguments else (10, 0)
        return f"decimal({precision}, {scale})"
    if kind.name not in _PRIMITIVE:
        raise NotSupportedError(
            f"Column {column}: Iceberg has no type {kind.name.upper()}.",
            "Use INT, BIGINT or STRING, which hold its values.",
        )
    return _PRIMITIVE[kind.name]


def differences(wanted: Mapping[str, Any], spec: CreateTableSpec, found: PinnedTable) -> list[str]:
    """The differences of an existing table, one phrase each; compares only requested options.

    ``wanted`` is the schema that ``spec`` describes. The names of partition fields may differ.
    """
    partition = [str(each) for each in spec.partitioned_by()]
    key = sorted(spec.primary_key, key=str.lower)
    options = {**found.metadata.properties, _VERSION: str(found.metadata.format_version)}
    return [
        *column_differences(table_columns(parse_fields(wanted)), table_columns(found.fields)),
        *default_differences(default_values(parse_fields(wanted)), default_values(found.fields)),
        *name_differences("partition fields", partition, found.partitioned_by),
        *name_differences("identifier fields", key, sorted(found.identifiers, key=str.lower)),
        *option_differences(spec.table_options, options),
    ]


def default_values(fields: Sequence[IcebergField]) -> dict[str, str]:
    """The defaults of new rows, by column."""
    return {e.name: str(e.write_default) for e in fields if e.write_default is not None}


def table_columns(fields: Sequence[IcebergField]) -> list[Column]:
    """The columns without comments, which may differ."""
    kinds = [opaque_type(each.type) or spark_type(each.type) for each in fields]
    return [Column(f.name, kind, not f.required) for f, kind in zip(fields, kinds, strict=True)]


def evolved(name: TableName, table: PinnedTable, changes: Sequence[SchemaChange]) -> PinnedTable:
    """``table`` with the changes in its current schema, which is not stored.

    Raises:
        NotSupportedError: Iceberg does not allow a change; names the column.
    """
    for change in changes:
        _refuse_key(name, table, change)
    types = [_type_of(change) for change in changes]
    try:
        library_table, updates = evolved_table(table.table, changes, types)
    except ValueError as error:
        raise NotSupportedError(
            f"schema_evolution: Iceberg refuses to change the columns of {name}: {error}",
            "Cast the source's columns to types that the table's can hold, or rename them.",
        ) from error
    return replace(
        table,
        table=library_table,
        fields=schema_fields(library_table.metadata.schema()),
        evolved_from=table,
        schema_updates=updates,
    )


def _refuse_key(name: TableName, table: PinnedTable, change: SchemaChange) -> None:
    """Refuse other types of columns that say where a row is stored, or which row it is."""
    keys = {
        "a partition column": _partition_sources(table),
        "an identifier column": table.identifiers,
    }
    for kind, columns in keys.items():
        if change.place in columns:
            raise NotSupportedError(
                f"schema_evolution: {change.place} of {name} is {kind}, whose type cannot be "
                f"changed to {change.type.upper()}.",
                "Cast the source's column to the table's type.",
            )


def _partition_sources(table: PinnedTable) -> Iterator[str]:
    parts = (part for spec in table.specs.values() for part in spec)
    return (part.source.name for part in parts if part.source is not None)


def _type_of(change: SchemaChange) -> Any:
    """The type in Iceberg's JSON form, where SMALLINT and TINYINT are INT, as Spark stores them."""
    try:
        return iceberg_type(_without_narrow(parse_type(change.type)), change.place, count(1))
    except NotSupportedError as error:
        raise NotSupportedError(
            f"schema_evolution: {change.place} has the type {change.type.upper()} in the source, "
            "which an Iceberg table cannot hold.",
            "Cast the source's column to another type.",
        ) from error


def _without_narrow(kind: SparkType) -> SparkType:
    if kind.name in ("tinyint", "byte", "smallint", "short"):
        return SparkType("int")
    fields = tuple(replace(each, type=_without_narrow(each.type)) for each in kind.fields)
    return replace(kind, fields=fields)
