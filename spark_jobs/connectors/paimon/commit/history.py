"""The snapshots that lead to a pinned one, with what they record. Driver only."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.connectors.paimon.commit.find_commit import newest_first
from spark_jobs.connectors.paimon.library import stored_snapshots, table_schema
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.spi.marks import HistoryEntry, TableHistory
from spark_jobs.spi.tables import TableHandle

_FIRST_SNAPSHOT = 1
_FIRST_SCHEMA = 0


def history(table: TableHandle) -> TableHistory:
    """The history of a table, from its pinned snapshot backwards.

    Raises:
        OSError: the storage refused.
    """
    target = pinned_table(table)
    return TableHistory(_identity(target), _entries(target))


def _identity(target: PinnedTable) -> str:
    try:
        return str(table_schema.identity(target.table, _FIRST_SCHEMA))
    except FileNotFoundError:
        return ""


def _entries(target: PinnedTable) -> Iterator[HistoryEntry]:
    if target.snapshot is None:
        return
    expected = target.snapshot.id
    ids = [each for each in stored_snapshots.snapshot_ids(target.table) if each <= expected]
    for snapshot, counts in newest_first(target.table, ids):
        if snapshot.id != expected:
            return
        yield HistoryEntry(
            snapshot.id,
            snapshot.id,
            dict(snapshot.properties or {}),
            counts,
            snapshot.id == _FIRST_SNAPSHOT,
        )
        expected -= 1
