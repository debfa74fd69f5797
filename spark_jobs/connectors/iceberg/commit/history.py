"""The snapshots that lead to the head of a branch, with what they record. Driver only."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.contract.undone import Undone
from spark_jobs.spi.marks import HistoryEntry, TableHistory

# Version 1 has no numbers, and pyiceberg's expiry cuts parents off.
_FIRST_NUMBER = 1


def history(table: PinnedTable) -> TableHistory:
    """The history of a branch, from its pinned snapshot backwards."""
    own = {each.snapshot_id for each in ancestors(table)}
    left = frozenset(each.snapshot_id for each in table.metadata.snapshots) - own
    return TableHistory(f"{table.metadata.table_uuid}", _entries(table), left)


def _entries(table: PinnedTable) -> Iterator[HistoryEntry]:
    undone = Undone()
    for snapshot in ancestors(table):
        properties, number = summary_of(snapshot), int(snapshot.sequence_number or 0)
        is_first = snapshot.parent_snapshot_id is None and number == _FIRST_NUMBER
        counts = undone.counts(properties)
        yield HistoryEntry(snapshot.snapshot_id, number, properties, counts, is_first)
