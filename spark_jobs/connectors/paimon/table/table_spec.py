"""The schema that a request asks for or a statement needs, and how a table differs. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from spark_jobs.connectors.paimon.format.types import is_nullable, to_paimon, to_spark
from spark_jobs.connectors.paimon.library import new_schemas, table_schema
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.table.definitions import (
    column_differences,
    comment_differences,
    default_differences,
    name_differences,
    option_differences,
)
from spark_jobs.contract.inserts import CREATED_BY
from spark_jobs.contract.literals import literal_text, require_literal
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.definitions import (
    OF_SERVER,
    is_reserved,
    refuse_transforms,
    with_keys_of_options,
)
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.tables import Column

# Options that are about the one table.
_OWN: Final = OF_SERVER | {"branch", "data-file.external-paths", CREATED_BY}


def requested_schema(spec: CreateTableSpec) -> PaimonSchema:
    """The schema that ``spec`` describes; keys get the case of their columns.

    Columns of the primary key are NOT NULL, even if the request does not say so. Options may name
    the keys.

    Raises:
        RequestError: REQUEST_INVALID: a key is named twice, or is not a column.
        NotSupportedError: Paimon cannot store a type, or partition by a transform.
        AnalysisError: EXPRESSION_INVALID: the text of a type is not a type.
    """
    spec = with_keys_of_options(spec)
    spelled = {column.name.lower(): column.name for column in spec.columns}
    primary_key = tuple(spelled[key.lower()] for key in spec.primary_key)
    partition = spec.partitioned_by()
    refuse_transforms(partition)
    return PaimonSchema(
        columns=tuple(
            PaimonColumn(
                column.name,
                to_paimon(
                    column.type,
                    column.name,
                    nullable=column.nullable and column.name not in primary_key,
                ),
                column.comment or None,
                _default(column),
            )
            for column in spec.columns
        ),
        partition_keys=tuple(key.column for key in partition),
        primary_keys=primary_key,
        options=dict(spec.table_options),
        comment=spec.comment or None,
    )


def _default(column: ColumnSpec) -> str | None:
    if column.default is None:
        return None
    value = require_literal("default", column.default, column.type)
    return None if value is None else default_text(column.name, value)


def default_text(column: str, value: Any) -> str:
    """A value of ``literal_value`` as Paimon keeps it: text that is cast to the column's type.

    Raises:
        NotSupportedError: no text means this value.
    """
    if isinstance(value, bytes):
        raise NotSupportedError(
            f"Column {column} is BINARY, for which Paimon has no defaults.",
            "Leave the default out.",
        )
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise NotSupportedError(
            f"Column {column} is TIMESTAMP: a default of Paimon would be another instant in each "
            "time zone.",
            "Leave the default out, or use TIMESTAMP_NTZ.",
        )
    text = literal_text(value)
    # Readers take quotes around it away.
    return f"'{text}'" if text[:1] == text[-1:] == "'" and len(text) > 1 else text


def differences(wanted: PaimonSchema, found: PaimonSchema) -> list[str]:
    """The differences of an existing table, one phrase each; compares only requested options."""
    phrases = [
        *column_differences(_columns(wanted), _columns(found)),
        *default_differences(_defaults(wanted), _defaults(found)),
        *name_differences("partition keys", wanted.partition_keys, found.partition_keys),
        *name_differences("primary key", wanted.primary_keys, found.primary_keys),
        *option_differences(wanted.options, found.options),
    ]
    if wanted.comment is not None:
        phrases += comment_differences("the table", wanted.comment, found.comment)
    return phrases


def _defaults(schema: PaimonSchema) -> dict[str, str]:
    return {each.name: each.default for each in schema.columns if each.default is not None}


def _columns(schema: PaimonSchema) -> list[Column]:
    return [
        Column(each.name, to_spark(each.type, each.name), is_nullable(each.type), each.comment)
        for each in schema.columns
    ]


def like_schema(schema: PaimonSchema, spec: CreateTableSpec) -> PaimonSchema:
    """The schema of a new table like that of ``schema``, with what ``spec`` gives in its place."""
    kept = {name: each for name, each in schema.options.items() if name not in _OWN}
    return replace(
        schema,
        options={**kept, **spec.table_options},
        comment=spec.comment or schema.comment,
    )


def evolved(name: TableName, table: PinnedTable, changes: Sequence[SchemaChange]) -> PinnedTable:
    """``table`` with the changes in its next schema, which is not stored.

    Raises:
        NotSupportedError: Paimon does not allow a change; names the column.
    """
    for change in changes:
        _refuse(name, table.schema, change)
    try:
        native = new_schemas.evolved_table(table.table, changes)
    except ValueError as error:
        raise NotSupportedError(
            f"schema_evolution: Paimon refuses to change the columns of {name}: {error}",
            "Alter the table with Paimon's own engines.",
        ) from error
    return PinnedTable(native, table.snapshot, table_schema.schema_of(native), table)


def _refuse(name: TableName, schema: PaimonSchema, change: SchemaChange) -> None:
    column, place = change.path[0], f"{change.place} of {name}"
    if change.before is None and is_reserved(change.path[-1]):
        raise NotSupportedError(
            f"schema_evolution: {place} cannot be added, because Paimon keeps the name for itself.",
            "Rename the column in the source.",
        )
    types = {each.name: each.type for each in schema.columns}
    if column in types and _is_in_key(types[column], change.path[1:]):
        raise NotSupportedError(
            f"schema_evolution: {place} is in the keys of a map, which Paimon cannot change.",
            "Give the source the type of the table's keys.",
        )
    keys = {
        "partition": schema.partition_keys,
        "primary key": schema.primary_keys,
        "bucket key": schema.bucket_key,
    }
    for kind, columns in keys.items():
        if column in columns:
            raise NotSupportedError(
                f"schema_evolution: {place} is a {kind} column, whose type cannot be changed to "
                f"{change.type.upper()}.",
                "Cast the source's column to the table's type.",
            )


def _is_in_key(kind: Any, path: Sequence[str]) -> bool:
    """Whether ``path`` leads from a type (JSON) into the key of a map."""
    if not path or not isinstance(kind, Mapping):
        return False
    if "key" in kind:
        return path[0] == "key" or _is_in_key(kind["value"], path[1:])
    if "element" in kind:
        return _is_in_key(kind["element"], path[1:])
    return any(_is_in_key(f["type"], path[1:]) for f in kind["fields"] if f["name"] == path[0])
