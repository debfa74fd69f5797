"""Former states of a table, found as by Spark's VERSION AS OF and TIMESTAMP AS OF. Driver only.

A number is the id of any snapshot that the metadata has; on a branch other than ``main``, of one of
its own history. Times are those of the log of what was current, which also knows rollbacks; other
branches have no log, and their history is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.table.former_states import (
    before_history,
    no_such_name,
    no_such_snapshot,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.contract.table_versions import TableVersion


def former_state(
    name: TableName, table: PinnedTable, at: TableVersion, millis: int | None
) -> tuple[Any, Any]:
    """Pyiceberg's snapshot of a former state, and the schema to read it by.

    That is the snapshot's own; of a branch that SQL names, the table's, as in Spark.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
        ValueError: the metadata does not have the schema.
    """
    if millis is not None:
        return _with_schema(table, _at_time(name, table, millis))
    number = at.snapshot
    if number is None and at.version is not None and at.version.strip().isdecimal():
        number = int(at.version)
    if number is not None:
        return _with_schema(table, _of_id(name, table, number, at.field))
    references = table.metadata.refs
    reference = references.get(at.tag if at.tag is not None else at.version)
    kinds = ("tag",) if at.tag is not None else ("tag", "branch")
    if reference is None or reference.snapshot_ref_type not in kinds:
        names = [each for each, found in references.items() if found.snapshot_ref_type in kinds]
        raise no_such_name(name, at, names)
    snapshot = _of_id(name, table, reference.snapshot_id, at.field, is_named=True)
    if reference.snapshot_ref_type == "branch":
        return snapshot, table.metadata.schema()
    return _with_schema(table, snapshot)


def _with_schema(table: PinnedTable, snapshot: Any) -> tuple[Any, Any]:
    wanted = snapshot.schema_id
    if wanted is None:
        return snapshot, table.metadata.schema()
    schema = next((each for each in table.metadata.schemas if each.schema_id == wanted), None)
    if schema is None:
        raise ValueError(f"the schema {wanted} of snapshot {snapshot.snapshot_id} is not there")
    return snapshot, schema


def _of_id(
    name: TableName, table: PinnedTable, number: int, field: str, *, is_named: bool = False
) -> Any:
    is_whole = table.branch == MAIN_BRANCH or is_named
    known = table.metadata.snapshots if is_whole else ancestors(table)
    snapshot = next((each for each in known if each.snapshot_id == number), None)
    if snapshot is None:
        raise no_such_snapshot(name, number, field)
    if not snapshot.manifest_list:
        raise ValueError(f"snapshot {number} has no manifest list")
    return snapshot


def _at_time(name: TableName, table: PinnedTable, millis: int) -> Any:
    states = list(_states(table))
    current = None
    for then, snapshot_id in states:
        if then <= millis:
            current = snapshot_id
    if current is None:
        raise before_history(name, millis, states[0][0] if states else None)
    return _of_id(name, table, current, "as_of", is_named=True)


def _states(table: PinnedTable) -> Iterator[tuple[int, int]]:
    """When which snapshot became the current one, oldest first; times in ms since 1970."""
    if table.branch == MAIN_BRANCH:
        for entry in table.metadata.snapshot_log:
            yield int(entry.timestamp_ms), int(entry.snapshot_id)
        return
    for entry in reversed(list(ancestors(table))):
        yield int(entry.timestamp_ms), int(entry.snapshot_id)
