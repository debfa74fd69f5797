"""Publishing compacted files as snapshots of the kind COMPACT, and finding them again.

Driver only. Their commit user is the operation's id, as of statements; their commit identifiers are
2, 3, …, so that none of them is taken for the commit of a whole operation (``commit.history``).

Each attempt reads what others committed since the plan (the gap) and leaves out the parts that do
not fit the table any more. Index files are made for the latest snapshot, so that vectors that
others write for other files meanwhile stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.commit.history import COMMIT_IDENTIFIER, Gap
from spark_jobs.connectors.paimon.commit.new_snapshot import Change, Commit
from spark_jobs.connectors.paimon.commit.publish import (
    SnapshotStore,
    publish_snapshot,
    require_schema,
)
from spark_jobs.connectors.paimon.compaction.append_compactor import remove_new_files
from spark_jobs.connectors.paimon.compaction.compacted_parts import (
    CompactedPart,
    KeptVectors,
    lost_parts,
    published,
    removed_entries,
)
from spark_jobs.connectors.paimon.format.manifest_entries import bucket_key_of
from spark_jobs.connectors.paimon.library import stored_snapshots
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.compaction.plan import require_each_file_once
from spark_jobs.contract.properties import published_properties
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.compaction import GroupCommit, PartResult, PublishedGroup, PublishedParts
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.files import in_parallel

_FIRST_GROUP: Final = COMMIT_IDENTIFIER + 1


def _is_group_of(snapshot: Any, operation_id: str) -> bool:
    """Whether the operation published the snapshot for one of its groups."""
    return bool(snapshot.commit_user == operation_id and snapshot.commit_identifier >= _FIRST_GROUP)


def group_snapshots(
    filesystem: pafs.FileSystem, table: PinnedTable, operation_id: str
) -> list[Any]:
    """The snapshots of the operation's groups that have not expired, oldest first.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    base = guard_of(filesystem, table, operation_id).base()
    if base is None:
        # No try of the operation publishes anything before it sets its guard.
        return []
    since = [each for each in stored_snapshots.snapshot_ids(table.table) if each >= base]
    found = in_parallel(partial(stored_snapshots.find_snapshot, table.table), since)
    return [each for each in found if each is not None and _is_group_of(each, operation_id)]


def next_identifier(snapshots: Iterable[Any], operation_id: str) -> int:
    """The commit identifier of the next group, after the operation's groups in ``snapshots``."""
    used = (each.commit_identifier for each in snapshots if _is_group_of(each, operation_id))
    return max(used, default=COMMIT_IDENTIFIER) + 1


@dataclass(frozen=True, slots=True)
class Publication:
    """The publication of one group, planned for the snapshot that ``table`` is pinned at.

    ``gap`` begins there; it may have been read further for other groups. ``identifier`` is the
    commit identifier, unless another driver of the operation has used it meanwhile.
    """

    metadata: PaimonMetadata
    filesystem: pafs.FileSystem
    store: SnapshotStore
    table: TableHandle
    gap: Gap
    commit: GroupCommit
    identifier: int

    def run(self, results: Sequence[PartResult]) -> PublishedGroup:
        """Publish the results of the group's parts.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN, or COMMIT_CONFLICT (nothing was published).
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        with before_publication():
            base = pinned_table(self.table)
            parts = [CompactedPart.of(base, result) for result in results]
            require_each_file_once([[e.file.file_name for e in part.before] for part in parts])
        vectors = KeptVectors(self.filesystem)
        try:
            group = until_committed(partial(self._attempt, parts, vectors))
        except JobError as error:
            # Whatever else goes wrong may go wrong after the publication.
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                vectors.remove()
            raise
        lost = (result for result in results if result.part.number in group.lost)
        for result in lost:
            remove_new_files(self.filesystem, result.fragments)
        return group

    def _attempt(
        self, parts: Sequence[CompactedPart], vectors: KeptVectors, number: int
    ) -> PublishedGroup | None:
        """What was published; None if another writer was faster."""
        base, operation_id = pinned_table(self.table), self.commit.operation_id
        with before_publication():
            latest = pinned_table(self.metadata.load_table(self.table.name))
            require_schema(self.table.name, latest, base)
            self.gap.read_up_to(latest.snapshot)
            lost = lost_parts(self.gap, parts, keyed=base.keyed is not None)
            kept_parts = [part for part in parts if part.number not in lost]
            if not kept_parts:
                vectors.remove()
                return PublishedGroup(None, lost, PublishedParts({}))
            change = _change(kept_parts, latest, vectors)
            done = published(base, kept_parts)
            snapshots = [each.snapshot for each in self.gap.commits]
            met = sum(each.commit_user != operation_id for each in snapshots)
            recorded = published_properties(self.commit.properties(done, lost), number, met)
            identifier = max(self.identifier, next_identifier(snapshots, operation_id))
        snapshot_id = publish_snapshot(
            self.store,
            latest,
            change,
            Commit(operation_id, identifier, recorded),
            self.commit.require_wanted,
        )
        if snapshot_id is None:
            return None
        return PublishedGroup(CommittedSnapshot(snapshot_id, recorded), lost, done)


def _change(parts: Sequence[CompactedPart], latest: PinnedTable, vectors: KeptVectors) -> Change:
    removed = removed_entries(parts)
    indexes = vectors.changes(latest, removed)
    added = [entry for part in parts for entry in part.after]
    return Change(
        entries=sorted([*removed, *added], key=lambda entry: repr(bucket_key_of(entry))),
        index_adds=indexes.adds,
        index_deletes=indexes.deletes,
        overwrites=False,
        changelog=[entry for part in parts for entry in part.changelog],
        compacts=True,
    )
