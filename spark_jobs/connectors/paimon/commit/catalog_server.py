"""Publishing to a REST catalog, whose server decides the order of commits. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_jobs.connectors.paimon.commit.new_snapshot import NewSnapshot
from spark_jobs.connectors.paimon.library import rest_catalog, stored_snapshots
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.errors import JobError


class CatalogServer:
    """Implements ``SnapshotStore``: the server compares and swaps, and writes the snapshot file."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Ask the server to commit ``new``; return False if another snapshot has its id."""
        if rest_catalog.commit_snapshot(
            self._catalog, latest.table, latest.snapshot, new.snapshot, new.entries
        ):
            return True
        # A proxy may have sent this request twice.
        try:
            found = stored_snapshots.find_snapshot(latest.table, new.snapshot.id)
        except JobError as error:
            raise TimeoutError(f"whose snapshot {new.snapshot.id} is, is not known") from error
        return found is not None and stored_snapshots.is_same_snapshot(found, new.snapshot)

    def store_schema(self, target: PinnedTable, changes: Sequence[Any]) -> bool:
        """Ask the server to alter the table; return False if it knows a column already."""
        return rest_catalog.alter_table(self._catalog, target.table, changes)
