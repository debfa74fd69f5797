"""Refuses definitions that would make a table what this project, or Java, cannot use."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.iceberg.alter.definition import NESTED, Definition
from spark_jobs.connectors.iceberg.alter.new_definition import NewDefinition
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, schema_fields
from spark_jobs.connectors.iceberg.table.refusals import refuse_unreadable, refuse_unwritable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError, NotSupportedError
from spark_jobs.formats.iceberg.foreign_types import type_name
from spark_jobs.formats.iceberg.refused_properties import FOLDERS
from spark_jobs.formats.iceberg.transforms import VOID


def refuse_altered(read: PinnedTable, wanted: NewDefinition) -> None:
    """Refuse a definition in which something is missing, or that makes the table no target.

    A table that is no target as it is may be altered: that may be the cure.

    Raises:
        NotSupportedError: names the column, the field or the property.
    """
    name, after = wanted.name, wanted.after
    _refuse_foreign(name, wanted)
    _refuse_gone_sources(name, after)
    _refuse_names(name, after)
    _refuse_folders(read, wanted)
    altered = _altered(read, wanted)
    refuse_unreadable(name, altered.metadata, altered.fields)
    if _is_target(name, read):
        refuse_unwritable(name, altered)


def _is_target(name: TableName, table: PinnedTable) -> bool:
    try:
        refuse_unwritable(name, table)
    except JobError:
        return False
    return True


def _altered(read: PinnedTable, wanted: NewDefinition) -> PinnedTable:
    """The table with the definition, which is not stored."""
    from pyiceberg.table import Table
    from pyiceberg.table.update import update_table_metadata

    table = read.table
    try:
        metadata = update_table_metadata(table.metadata, wanted.updates(read)[1])
    except ValueError as error:
        raise NotSupportedError(
            f"{wanted.name}: Iceberg's library refuses the change: {error}",
            "Alter the table with Iceberg's own engines.",
        ) from error
    made = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    return PinnedTable(
        made, read.storage, read.branch, read.snapshot, schema_fields(metadata.schema())
    )


def _refuse_foreign(name: TableName, wanted: NewDefinition) -> None:
    """Refuse new schemas of tables with types for which pyiceberg has no names.

    In a new schema, those that stand in for them would be stored.
    """
    if wanted.before.schema == wanted.after.schema:
        return
    for column in wanted.before.fields:
        foreign = _foreign_type(column["type"])
        if foreign:
            raise NotSupportedError(
                f"{name}: column {column['name']} has the type {foreign}: columns of such a table "
                "are not changed here.",
                "Alter the table with Iceberg's own engines.",
            )


def _foreign_type(kind: Any) -> str:
    """A type within ``kind`` (JSON) that pyiceberg calls otherwise; empty if there is none."""
    if isinstance(kind, str):
        return type_name(kind) if type_name(kind) != kind else ""
    inner = [kind[part] for part in NESTED.get(kind["type"], ())]
    inner += [each["type"] for each in kind.get("fields", ())]
    return next(filter(None, map(_foreign_type, inner)), "")


def _refuse_folders(read: PinnedTable, wanted: NewDefinition) -> None:
    """Refuse new folders on other storage than the table's, for which jobs have no keys."""
    before, after = wanted.before.properties, wanted.after.properties
    for option in FOLDERS:
        value = after.get(option)
        if not value or value == before.get(option):
            continue
        try:
            read.storage.path(value)
        except NotSupportedError as error:
            raise NotSupportedError(
                f"{wanted.name}: property {option} = {value} is on other storage than the table.",
                "Name a folder on the table's storage.",
            ) from error


def _refuse_gone_sources(name: TableName, after: Definition) -> None:
    """Refuse to drop what partitions or the order are made of."""
    known = set(after.paths())
    current = [part for part in after.spec if part["source-id"] not in known]
    if current:
        raise NotSupportedError(
            f"{name}: the partition field {current[0]['name']} is of a column that is dropped.",
            "Drop the partition field first (DROP PARTITION FIELD)."
            if current[0]["transform"] != VOID
            else "The column stays: tables of version 1 keep fields that were dropped.",
        )
    if any(part["source-id"] not in known for part in after.order):
        raise NotSupportedError(
            f"{name}: rows are sorted by a column that is dropped.",
            "Set another order first (WRITE ORDERED BY, WRITE UNORDERED).",
        )
    for spec in after.specs.values():
        for part in spec:
            if part["source-id"] not in known:
                raise NotSupportedError(
                    f"{name}: files may still be partitioned by {part['name']}, a partition field "
                    "that is gone, of a column that is dropped.",
                    "Compact the table, expire its snapshots with clean_expired_metadata=True, "
                    "then drop the column.",
                )


def _refuse_names(name: TableName, after: Definition) -> None:
    """Refuse columns with the name of a partition field that is not of that column."""
    columns: dict[str, Any] = {each["name"].lower(): each["id"] for each in after.fields}
    for spec in (after.spec, *after.specs.values()):
        for part in spec:
            number = columns.get(part["name"].lower())
            is_own = part["transform"] in ("identity", VOID) and number == part["source-id"]
            if number is not None and not is_own:
                raise NotSupportedError(
                    f"{name}: a partition field and a column would both be called {part['name']}.",
                    "Take another name for the new one.",
                )
