"""Merges of this project without Spark and engine: rows are read, changed and published here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan, RangeScan, ScannedFile
from spark_jobs.connectors.paimon.read.planning import scanned_range
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.contract.request import TableName
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import InsertedKeys, MergeWrite, Operation
from tests.support.keyed_changes import KeyedChange, keyed_batches, keyed_rows, new_row
from tests.support.paimon_tables import TARGET_SIZE, change_rows, inserts, schema_of, store

Row = dict[str, Any]
Key = tuple[Any, ...]


def live_rows(connector: Connector, table: TableHandle) -> list[Row]:
    """The rows that readers see, with ``file`` and ``position``, as this project reads them."""
    planned = connector.metadata.plan_files(table)
    if table.key_columns:
        return keyed_rows(connector, table, planned)
    native = pinned_table(table)
    parts = pafs.LocalFileSystem(), tuple(schema_of(table)), {}, native.files.mappings
    if native.evolves_columns:
        ranges = [scanned_range(native, file.ordinal) for file in planned]
        batches = RangeScan(*parts).read(ranges)
    else:
        batches = ArrowScan(*parts).read([_scanned(native, file) for file in planned])
    found = []
    for batch in batches:
        names = [*table.column_names, "row"]
        for row in batch.rename_columns(names).to_pylist():
            found.append({**row, **row.pop("row")})
    return found


def merge_rows(
    connector: Connector,
    name: TableName,
    key: Sequence[str],
    source: Collection[Row],
    assigned: Sequence[str],
    is_deleted: Callable[[Row], bool],
    *,
    may_exist: bool = False,
    operation_id: str = "",
    properties: Mapping[str, str] | None = None,
) -> CommittedSnapshot | None:
    """Delete or update the rows whose keys ``source`` has, and insert the others of ``source``.

    An update sets the ``assigned`` columns. ``may_exist``: nothing proves that inserted keys are
    new, so that the connector looks for them. None: there is nothing to do.

    Raises:
        JobError: nothing was published, and no file is left.
    """
    table = connector.metadata.load_table(name)
    old = {tuple(row[each] for each in key): row for row in live_rows(connector, table)}
    changes = _changes(old, key, source, assigned, is_deleted)
    if not changes:
        return None
    write = MergeWrite(
        Operation(operation_id or f"merge-{uuid.uuid4().hex}", "digest", {}),
        connector.metadata.plan_files(table),
        (tuple(assigned), (), ()),
        (),
        TARGET_SIZE,
        inserted_keys=InsertedKeys.CHECKED if may_exist else InsertedKeys.NEW,
    )
    handle = connector.writes.begin_merge(table, write)
    try:
        batches = (keyed_batches if table.key_columns else _batches)(table, changes)
        fragments = store(handle, *batches, task=uuid.uuid4().hex)
        return connector.writes.finish_merge(table, handle, fragments, properties or {})
    except BaseException:
        connector.writes.abort_merge(table, handle)
        raise
    finally:
        connector.writes.release_guard(table, write.operation.operation_id)


def _changes(
    old: Mapping[Key, Row],
    key: Sequence[str],
    source: Collection[Row],
    assigned: Sequence[str],
    is_deleted: Callable[[Row], bool],
) -> list[KeyedChange]:
    changes = []
    for row in source:
        found = old.get(tuple(row[each] for each in key))
        if found is None:
            changes.append(new_row(row))
        elif is_deleted(row):
            changes.append(KeyedChange(rows.DELETE, found, case=1))
        else:
            changed = {name: row[name] for name in assigned}
            changes.append(KeyedChange(rows.UPDATE, {**found, **changed}))
    return changes


def _batches(table: TableHandle, changes: Sequence[KeyedChange]) -> list[Any]:
    """Change rows of an append table, as a sink task gets them: by file and position."""
    touched = [each for each in changes if each.operation != rows.INSERT]
    new = [each.row for each in changes if each.operation == rows.INSERT]
    batches = []
    for change in sorted(touched, key=lambda each: (each.row["file"], each.row["position"])):
        if change.operation == rows.UPDATE and table.native.marks_rows:
            at = {name: change.row[name] for name in ("file", "position")}
            batches.append(change_rows(table, rows.DELETE, [at], case=1))
            new.append({n: v for n, v in change.row.items() if n not in at})
        else:
            batches.append(change_rows(table, change.operation, [change.row], change.case))
    return [*batches, *([inserts(table, new)] if new else [])]


def _scanned(native: PinnedTable, file: PlannedFile) -> ScannedFile:
    name = file.path.rpartition("/")[2]
    schema_id = native.columns.mapped_schema(native.files.located_entries[file.ordinal][1])
    return ScannedFile(
        file.ordinal, file.path, native.files.vectors.get(name), schema_id, file.row_count
    )
