"""Publishing compacted files as a snapshot of the operation ``replace``. Driver only.

New files keep the sequence number of the snapshot that was planned for: equality deletes that
others commit meanwhile still apply to their rows. Whoever removes a file of a part meanwhile, or
adds position deletes for it, is in conflict with that part alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile, kept_order, new_data_file
from spark_jobs.connectors.iceberg.commit.gap import Gap
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.table.live_files import LiveFile, may_apply
from spark_jobs.connectors.iceberg.table.manifests import EQUALITY_DELETES, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.compaction.plan import texts_of
from spark_jobs.connectors.shared.compaction.published_parts import (
    by_partition,
    require_each_file_once,
)
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.contract.properties import published_properties
from spark_jobs.spi.compaction import GroupCommit, PartResult, PublishedGroup, PublishedParts


@dataclass(frozen=True, slots=True)
class CompactedPart:
    """A part whose files are written."""

    result: PartResult
    before: Sequence[LiveFile]
    after: Sequence[NewDataFile]

    @classmethod
    def of(cls, table: PinnedTable, result: PartResult) -> CompactedPart:
        """The part with this ``result``; ``table`` is as it was when the part was planned."""
        documents = [fragment.document["compacted"] for fragment in result.fragments]
        before = [table.files[index] for each in documents for index in each["files"]]
        after = [
            _added(table, before, file, each["order"])
            for each in documents
            for file in each["added"]
        ]
        return cls(result, before, after)

    @property
    def number(self) -> int:
        """The number of the part in its group."""
        return self.result.part.number

    def did(self, table: PinnedTable) -> CompactedPartition:
        """What the part did, as a share of what its partition did."""
        first = self.before[0].entry
        return CompactedPartition(
            values=texts_of(named_partition(table, first.spec_id, first.partition)),
            files_before=len(self.before),
            files_after=len(self.after),
            bytes_before=sum(file.entry.size for file in self.before),
            bytes_after=sum(file.size for file in self.after),
            rows=sum(file.row_count for file in self.after),
            vectors_removed=sum(len(file.own_deletes) for file in self.before),
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """The publication of one group, planned for the snapshot that the table is pinned at.

    ``gap`` begins there; it may have been read further for other groups.
    """

    commits: SnapshotCommits
    gap: Gap
    commit: GroupCommit

    def run(self, results: Sequence[PartResult]) -> PublishedGroup:
        """Publish the results of the group's parts.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN, or COMMIT_CONFLICT (nothing was published).
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: raised by ``require_wanted`` (nothing was published).
        """
        with before_publication():
            base = pinned_table(self.commits.table)
            parts = [CompactedPart.of(base, result) for result in results]
            require_each_file_once([[f.entry.path for f in part.before] for part in parts])
        return until_committed(partial(self._attempt, base, parts))

    def _attempt(
        self, base: PinnedTable, parts: Sequence[CompactedPart], number: int
    ) -> PublishedGroup | None:
        """What was published; None if another writer was faster."""
        with before_publication():
            latest = self.commits.latest()
            self.gap.read_up_to(latest)
            lost = _lost(base, self.gap, parts)
            kept = [part for part in parts if part.number not in lost]
            if not kept:
                return PublishedGroup(None, lost, PublishedParts({}))
            did = ((part.result.part.partition, part.did(base)) for part in kept)
            done = PublishedParts(by_partition(did))
            others = [
                each for each in self.gap.commits if each.operation_id != self.commit.operation_id
            ]
            properties = self.commit.properties(done, lost)
            recorded = published_properties(properties, number, len(others))
            changes = _changes(base, latest, kept)
        wanted = self.commit.require_wanted
        snapshot = self.commits.publish(latest, changes, recorded, wanted)
        return None if snapshot is None else PublishedGroup(snapshot, lost, done)


def _added(
    table: PinnedTable, before: Sequence[LiveFile], document: Mapping[str, Any], order: int | None
) -> NewDataFile:
    first = before[0].entry
    if order is None:
        order = kept_order(table, first, ()) if len(before) == 1 else 0
    file = new_data_file(table, document, first.spec_id, first.partition, order)
    return file.of_number(table.snapshot.sequence_number if table.snapshot else None)


def _changes(base: PinnedTable, latest: PinnedTable, parts: Sequence[CompactedPart]) -> Changes:
    before = [file for part in parts for file in part.before]
    removed: dict[str, ManifestEntry] = {}
    for file in before:
        removed |= {each.path: each for each in (file.entry, *file.own_deletes)}
    if any(len(file.own_deletes) < len(file.all_deletes) for file in before):
        removed |= _dangling(base, latest, {file.entry.path for file in before})
    added = [file for part in parts for file in part.after]
    return Changes(added, [], removed, [], replaces=True)


def _dangling(
    base: PinnedTable, latest: PinnedTable, removed: Collection[str]
) -> Mapping[str, ManifestEntry]:
    """The files of deletes that apply to no file of ``latest`` but those ``removed``, by path.

    Those that came after ``base`` still apply to the new files.
    """
    number = base.snapshot.sequence_number if base.snapshot else 0
    applied: dict[str, ManifestEntry] = {}
    needed: set[str] = set()
    for file in latest.files:
        if file.entry.path in removed:
            applied |= {each.path: each for each in file.all_deletes}
        else:
            needed.update(each.path for each in file.all_deletes)
    return {
        path: each
        for path, each in applied.items()
        if path not in needed and each.sequence_number <= number
    }


def _lost(base: PinnedTable, gap: Gap, parts: Iterable[CompactedPart]) -> frozenset[int]:
    """The numbers of the parts that do not fit the table after the commits in ``gap``."""
    gone = {each.path for commit in gap.commits for each in commit.removed}
    deletes = [
        each
        for commit in gap.commits
        for each in commit.delete_files
        if each.content != EQUALITY_DELETES
    ]
    return frozenset(
        part.number
        for part in parts
        for file in part.before
        if not gone.isdisjoint(each.path for each in (file.entry, *file.own_deletes))
        or any(may_apply(each, file.entry, base.unpartitioned) for each in deletes)
    )
