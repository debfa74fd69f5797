"""Committing a merge as a snapshot. Driver only.

The change is prepared once. Each attempt then reads what others committed since the previous
attempt (the gap), refuses conflicts, writes the manifests of a snapshot after the latest one, and
publishes it. If another writer was faster, the next attempt begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.begin_merge import PaimonMerge
from spark_jobs.connectors.paimon.commit.changes import Changes
from spark_jobs.connectors.paimon.commit.conflicts import refuse_conflicts
from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER, Gap
from spark_jobs.connectors.paimon.commit.new_snapshot import Change, Commit
from spark_jobs.connectors.paimon.commit.publish import (
    SnapshotStore,
    after_evolution,
    publish_snapshot,
    require_same_table,
    require_schema,
    store_schema,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.commit.refusals import refuse_moved_mark, refuse_own_commit
from spark_jobs.contract.properties import published_properties
from spark_jobs.errors import ErrorCode, InternalError, JobError
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class MergeCommit:
    """The commit of ``merge``, which is based on the snapshot that ``table`` is pinned at.

    ``properties`` are what the snapshot is to record, still without the metrics of publishing.
    """

    metadata: PaimonMetadata
    filesystem: pafs.FileSystem
    store: SnapshotStore
    table: TableHandle
    merge: PaimonMerge
    properties: Mapping[str, str]

    def run(self, fragments: Sequence[Fragment]) -> CommittedSnapshot:
        """Publish the fragments as one snapshot.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        base, overwrites = pinned_table(self.table), self.merge.write.overwrites
        if not fragments and not overwrites and not self.merge.write.operation.marks:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                "There is nothing to commit.",
                "This is a defect: report it with the statement.",
            )
        with before_publication():
            prefix = self.merge.prefixes.indexes
            changes = Changes(base, fragments, self.filesystem, prefix, overwrites=overwrites)
            gap = Gap(base)
        if base.evolved_from is None or not self._store_schema(changes, gap):
            return until_committed(partial(self._attempt, changes, gap))
        try:
            return until_committed(partial(self._attempt, changes, gap))
        except JobError as error:
            raise after_evolution(error, self.table) from error

    def _store_schema(self, changes: Changes, gap: Gap) -> bool:
        """Store the evolved schema unless the change conflicts; False if it is stored already."""
        with before_publication():
            latest = pinned_table(self.metadata.load_table(self.table.name))
            require_same_table(self.table.name, latest, pinned_table(self.table))
            gap.read_up_to(latest.snapshot)
            self._without_conflict(changes, gap, latest)
            self.merge.write.require_wanted()
        return store_schema(self.metadata, self.store, self.table)

    def _attempt(self, changes: Changes, gap: Gap, number: int) -> CommittedSnapshot | None:
        """The new snapshot; None if another writer was faster."""
        with before_publication():
            latest = self._latest()
            gap.read_up_to(latest.snapshot)
            change = self._without_conflict(changes, gap, latest)
        recorded = published_properties(self.properties, number, len(gap.commits))
        commit = Commit(self.merge.operation_id, COMMIT_IDENTIFIER, recorded)
        wanted = self.merge.write.require_wanted
        snapshot_id = publish_snapshot(self.store, latest, change, commit, wanted)
        return None if snapshot_id is None else CommittedSnapshot(snapshot_id, recorded)

    def _latest(self) -> PinnedTable:
        """The table as it is now.

        Raises:
            CommitError: COMMIT_CONFLICT: files were made for another schema, or another table.
        """
        latest = pinned_table(self.metadata.load_table(self.table.name))
        require_schema(self.table.name, latest, self.merge.target)
        require_same_table(self.table.name, latest, pinned_table(self.table))
        return latest

    def _without_conflict(self, changes: Changes, gap: Gap, latest: PinnedTable) -> Change:
        """The change to publish after the gap.

        Raises:
            CommitError: COMMIT_CONFLICT: it conflicts with a commit in the gap.
        """
        base, write = pinned_table(self.table), self.merge.write
        for snapshot in (commit.snapshot for commit in gap.commits):
            if snapshot.commit_identifier == COMMIT_IDENTIFIER:
                refuse_own_commit(snapshot.id, snapshot.commit_user, write.operation)
            refuse_moved_mark(snapshot.id, snapshot.properties or {}, write.operation)
        change = changes.behind(gap, latest)
        refuse_conflicts(base, gap, change, changes.index_files, write)
        return change
