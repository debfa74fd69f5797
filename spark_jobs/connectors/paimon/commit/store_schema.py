"""Storing the schema of an evolved table. Driver only.

A schema and the snapshot whose files need it are two files, so they cannot appear together. The
schema comes first: a table that has it and not the snapshot has more columns and the same rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.schema_evolution import library_changes
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, store_once
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError, error_of
from spark_jobs.spi.tables import TableHandle


def store_schema(metadata: PaimonMetadata, store: SnapshotStore, table: TableHandle) -> bool:
    """Store the schema of an evolved table; False if there is none to store.

    Raises:
        CommitError: COMMIT_CONFLICT: the table's schema is no longer the one that was evolved.
        InternalError: STORAGE_UNAVAILABLE.
    """
    target = pinned_table(table)
    with before_publication():
        latest = pinned_table(metadata.load_table(table.name))
    if target.evolved_from is None or _file_schema(latest) == _file_schema(target):
        return False
    require_schema(table.name, latest, target.evolved_from)
    number = table_schema.schema_id(target.table)
    try:
        store_once(
            f"schema {number}",
            partial(store.store_schema, target, library_changes(table.schema_changes)),
            partial(_is_stored, metadata, table),
        )
    except CommitError as error:
        if error.code is ErrorCode.COMMIT_CONFLICT:
            raise
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"{error.message} The rows of {table.name} are unchanged.",
            "Check the warehouse's storage, then run the statement again.",
        ) from error
    with before_publication():
        latest = pinned_table(metadata.load_table(table.name))
    require_schema(table.name, latest, target)
    return True


def require_schema(name: TableName, latest: PinnedTable, expected: PinnedTable) -> None:
    """Check that files for ``expected`` fit the table as it is now.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    if _file_schema(latest) != _file_schema(expected):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"The schema of {name} was changed while the statement ran.",
            "Run the statement again: it will read the table's new schema.",
        )


def require_same_table(name: TableName, latest: PinnedTable, base: PinnedTable) -> None:
    """Check that the table is still the one that was read, with or without snapshots.

    Files that were written for a table that is gone are gone with it.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    read = base.evolved_from or base
    number = table_schema.schema_id(read.table)
    if table_schema.identity(latest.table, number) != table_schema.identity(read.table, number):
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"{name} was dropped and created anew while the statement ran.",
            "Run the statement again: it will read the new table.",
        )


def after_evolution(error: JobError, table: TableHandle) -> JobError:
    """``error``, which came after the schema was stored, saying so."""
    changes = ", ".join(map(str, table.schema_changes))
    note = f"The schema of {table.name} has been changed already ({changes}), its rows have not."
    if error.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN:
        note = f"The schema of {table.name} has been changed ({changes})."
    return error_of(error.code, f"{error.message} {note}", error.remedy)


def _is_stored(metadata: PaimonMetadata, table: TableHandle) -> bool | None:
    """Whether the next schema is the evolved one; None if there is no next schema."""
    target = pinned_table(table)
    latest = pinned_table(metadata.load_table(table.name))
    if table_schema.schema_id(latest.table) < table_schema.schema_id(target.table):
        return None
    return _file_schema(latest) == _file_schema(target)


def _file_schema(table: PinnedTable) -> tuple[Any, ...]:
    """The schema that new files depend on: not only its id, which a recreated table may reuse."""
    schema, schema_id = table.schema, table_schema.schema_id(table.table)
    ids = table_schema.field_ids(table.table)
    return schema_id, schema.columns, ids, schema.partition_keys, table.bucketing.count
