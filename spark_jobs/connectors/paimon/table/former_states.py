"""Former states of a table, found as by Paimon's VERSION AS OF and TIMESTAMP AS OF. Driver only.

A name that SQL gives is that of a tag, else the id of a snapshot. A time is that of the last
snapshot until then, among those that are retained.
"""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.paimon.library import rest_references, stored_snapshots, table_schema
from spark_jobs.connectors.paimon.library.stored_snapshots import text_of
from spark_jobs.connectors.shared.table.former_states import (
    before_history,
    no_such_name,
    no_such_snapshot,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.formats.paimon.metadata_files import entry_path, names_of


def former_snapshot(
    name: TableName, table: Any, at: TableVersion, millis: int | None, server: Any | None
) -> Any:
    """Pypaimon's snapshot of a former state; ``server`` is the REST catalog that knows the tags.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND, METADATA_UNREADABLE.
        InternalError: STORAGE_UNAVAILABLE.
    """
    if millis is not None:
        return _at_time(name, table, millis)
    number, tag = at.snapshot, at.tag if at.tag is not None else at.version
    if tag is not None:
        snapshot = _tagged(table, tag, server)
        if snapshot is not None:
            return snapshot
        if at.tag is not None or not tag.strip().isdecimal():
            raise no_such_name(name, at, _tags(table, server))
        number = int(tag)
    assert number is not None  # noqa: S101 - one of them is given
    snapshot = stored_snapshots.find_snapshot(table, number)
    if snapshot is None:
        raise no_such_snapshot(name, number, at.field)
    return snapshot


def _at_time(name: TableName, table: Any, millis: int) -> Any:
    ids = stored_snapshots.snapshot_ids(table)
    latest, low, high = None, 0, len(ids)
    first = None
    while low < high:
        middle = (low + high) // 2
        snapshot = stored_snapshots.find_snapshot(table, ids[middle])
        if snapshot is None:  # has just expired
            low = middle + 1
            continue
        if middle == 0:
            first = int(snapshot.time_millis)
        if snapshot.time_millis <= millis:
            latest, low = snapshot, middle + 1
        else:
            high = middle
    if latest is None:
        raise before_history(name, millis, first)
    return latest


def _tagged(table: Any, tag: str, server: Any | None) -> Any | None:
    if server is not None:
        return rest_references.tagged_snapshot(server, table, tag)
    if "/" in tag:  # would lead out of the folder
        return None
    text = text_of(table.file_io, entry_path(table_schema.branch_path(table), "tag", tag))
    return (
        None if text is None else stored_snapshots.snapshot_of_tag(stored_snapshots.parse_tag(text))
    )


def _tags(table: Any, server: Any | None) -> list[str]:
    if server is not None:
        return rest_references.tag_names(server, table)
    folder = f"{table_schema.branch_path(table)}/tag"
    if not table.file_io.exists(folder):
        return []
    infos = table.file_io.list_status(folder)
    return names_of("tag", (info.path.rpartition("/")[2] for info in infos))
