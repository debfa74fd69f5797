"""Making a snapshot visible: only if no other writer made one of the same id first. Driver only.

pypaimon's own publish checks and then renames: two processes may both pass the check and one
snapshot is lost. Each kind of storage or catalog gets a ``SnapshotStore`` that closes the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from spark_jobs.connectors.paimon.library import snapshot_files
from spark_jobs.contract.paimon_files import entry_path, hint_path

if TYPE_CHECKING:
    from spark_jobs.connectors.paimon.commit.new_snapshot import NewSnapshot
    from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
    from spark_jobs.storage.exclusive_files import ExclusiveFiles


class SnapshotStore(Protocol):
    """Decides which of several writers makes a table's next snapshot."""

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Make ``new`` the snapshot after that of ``latest``; False: its id is another one's.

        Called again with the same snapshot after a failure, it may answer False for it.

        Raises:
            OSError: it failed; whether the snapshot is there must be looked up.
            TimeoutError, ConnectionError: there was no answer; if the snapshot is not there now, it
                may still appear.
        """
        ...


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A ``SnapshotStore`` where the storage decides: a snapshot is there when its file is."""

    files: ExclusiveFiles

    def publish(self, latest: PinnedTable, new: NewSnapshot) -> bool:
        """Create the snapshot's file, then renew the hint."""
        root = latest.branch_path
        text = snapshot_files.snapshot_json(new.snapshot)
        is_created = self.files.create(entry_path(root, "snapshot", new.snapshot.id), text)
        if is_created:
            self.files.write_hint(hint_path(root, "LATEST"), str(new.snapshot.id))
        return is_created
