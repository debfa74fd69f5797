"""A table with the columns that a statement adds, or the reason why it cannot have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from spark_jobs.connectors.iceberg.library.definitions import evolved_table
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, schema_fields
from spark_jobs.connectors.iceberg.table.table_spec import iceberg_type
from spark_jobs.contract.request import TableName
from spark_jobs.contract.spark_types import SparkType, parse_type
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.schema_changes import SchemaChange


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
