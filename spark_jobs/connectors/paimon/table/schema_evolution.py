"""A table with the columns that a statement adds, or the reason why it cannot have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_jobs.connectors.paimon.library import new_schemas, table_schema
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.definitions import is_reserved
from spark_jobs.spi.schema_changes import SchemaChange


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
