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

from spark_jobs.connectors.iceberg.commit.changes import Changes, new_partition, shared_files
from spark_jobs.connectors.iceberg.commit.conflicts import may_have_got_ids
from spark_jobs.connectors.iceberg.commit.history import Gap
from spark_jobs.connectors.iceberg.commit.manifest_records import (
    NewDataFile,
    kept_order,
    new_data_file,
    new_delete_file,
)
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.compaction.part_compactor import DeletesPart
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.table.live_files import LiveFile, may_apply
from spark_jobs.connectors.iceberg.table.manifests import EQUALITY_DELETES, FileKey, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.write.table_layout import partition_columns
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.compaction.plan import (
    by_partition,
    require_each_file_once,
    texts_of,
)
from spark_jobs.contract.compaction import CompactedPartition
from spark_jobs.contract.properties import published_properties
from spark_jobs.spi.compaction import GroupCommit, PartResult, PublishedGroup, PublishedParts


@dataclass(frozen=True, slots=True)
class _RewrittenDeletes:
    """``before`` are the data files, ``after`` their new files of deletes.

    A new file has the highest sequence number of those that it replaces: it is about one data file,
    to which all of them applied.
    """

    result: PartResult
    before: Sequence[LiveFile]
    after: Sequence[NewDataFile]

    @classmethod
    def of(cls, table: PinnedTable, result: PartResult) -> _RewrittenDeletes:
        """The part with this ``result``; ``table`` is as it was when the part was planned."""
        documents = [fragment.document["compacted"] for fragment in result.fragments]
        before = [table.lean_files[index] for each in documents for index in each["files"]]
        after = []
        for document in (file for each in documents for file in each["added"]):
            marked = table.lean_files[document["file"]]
            number = max(each.sequence_number for each in marked.deletes)
            after.append(new_delete_file(table, document, marked.entry).of_number(number))
        return cls(result, before, after)

    @property
    def removed(self) -> Mapping[FileKey, ManifestEntry]:
        """The files of deletes that go."""
        return {each.key: each for file in self.before for each in file.deletes}

    @property
    def replaced(self) -> Sequence[FileKey]:
        """The files that no other part may replace."""
        return list(self.removed)

    def is_lost(
        self, table: PinnedTable, gone: Collection[FileKey], deletes: Sequence[ManifestEntry]
    ) -> bool:
        """Whether others have removed one of its files; new ``deletes`` are not in the way."""
        del table, deletes
        return any(key in gone for key in (*self.removed, *(f.entry.key for f in self.before)))

    def did(self, table: PinnedTable) -> CompactedPartition:
        """What the part did to files of deletes, as a share of what its partition did."""
        first, removed = self.before[0].entry, self.removed.values()
        is_placed = first.spec_id == table.metadata.default_spec_id
        values = named_partition(table, first.spec_id, first.partition) if is_placed else {}
        return CompactedPartition(
            values=texts_of(values),
            files_before=len(removed),
            files_after=len(self.after),
            bytes_before=sum(each.size for each in removed),
            bytes_after=sum(each.size for each in self.after),
            rows=sum(each.row_count for each in self.after),
            vectors_removed=len(removed),
        )


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
        before = [table.lean_files[index] for each in documents for index in each["files"]]
        after = [
            _added(table, before, file, document["order"])
            for document in documents
            for file in document["added"]
        ]
        return cls(result, before, after)

    @property
    def replaced(self) -> Sequence[FileKey]:
        """The files that no other part may replace."""
        return [each.entry.key for each in self.before]

    def is_lost(
        self, table: PinnedTable, gone: Collection[FileKey], deletes: Sequence[ManifestEntry]
    ) -> bool:
        """Whether what others removed, or their new ``deletes``, is in the way."""
        if any(
            each.key in gone for file in self.before for each in (file.entry, *file.own_deletes)
        ):
            return True
        of_values = [each for each in deletes if each.content == EQUALITY_DELETES]
        of_positions = [each for each in deletes if each.content != EQUALITY_DELETES]
        return any(self._loses(table, each) for each in of_values) or any(
            may_apply(each, file.entry, table.unpartitioned)
            for each in of_positions
            for file in self.before
        )

    def _loses(self, table: PinnedTable, delete: ManifestEntry) -> bool:
        """Whether equality deletes of others may be about other rows than before.

        They are about a partition of one spec, or about all, and rows of older specs move.
        """
        current = table.metadata.default_spec_id
        older = [each.entry for each in self.before if each.entry.spec_id != current]
        if not older or delete.spec_id in table.unpartitioned:
            return False
        if delete.spec_id != current:
            return any(may_apply(delete, each, table.unpartitioned) for each in older)
        place = _place(table, delete.partition)
        return any(_place(table, each.partition) == place for each in self.after)

    def did(self, table: PinnedTable) -> CompactedPartition:
        """What the part did, as a share of what its partition did."""
        first = self.before[0].entry
        is_placed = first.spec_id == table.metadata.default_spec_id
        values = named_partition(table, first.spec_id, first.partition) if is_placed else {}
        return CompactedPartition(
            values=texts_of(values),
            files_before=len(self.before),
            files_after=len(self.after),
            bytes_before=sum(file.entry.size for file in self.before),
            bytes_after=sum(file.size for file in self.after),
            rows=sum(file.row_count for file in self.after),
            vectors_removed=sum(len(file.own_deletes) for file in self.before),
        )


Part = CompactedPart | _RewrittenDeletes


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
            parts = [_part(base, result) for result in results]
            require_each_file_once(part.replaced for part in parts)
        return until_committed(partial(self._attempt, base, parts))

    def _attempt(
        self, base: PinnedTable, parts: Sequence[Part], number: int
    ) -> PublishedGroup | None:
        """What was published; None if another writer was faster."""
        with before_publication():
            latest = self.commits.latest()
            self.gap.read_up_to(latest)
            lost = _lost(base, self.gap, parts)
            kept_parts = [part for part in parts if part.result.part.number not in lost]
            if not kept_parts:
                return PublishedGroup(None, lost, PublishedParts({}))
            did = ((part.result.part.partition, part.did(base)) for part in kept_parts)
            done = PublishedParts(by_partition(did))
            others = [
                each for each in self.gap.commits if each.operation_id != self.commit.operation_id
            ]
            properties = self.commit.properties(done, lost)
            recorded = published_properties(properties, number, len(others))
            changes = _changes(base, latest, kept_parts)
        wanted = self.commit.require_wanted
        snapshot = self.commits.publish(latest, changes, recorded, wanted)
        return None if snapshot is None else PublishedGroup(snapshot, lost, done)


def _added(
    table: PinnedTable, before: Sequence[LiveFile], document: Mapping[str, Any], order: int | None
) -> NewDataFile:
    first, current = before[0].entry, table.metadata.default_spec_id
    if order is None:
        order = kept_order(table, first, ()) if len(before) == 1 else 0
    partition: Mapping[int, Any]
    if document["partition"] is not None:
        partition = new_partition(partition_columns(table), document["partition"])
    else:
        # Otherwise, only a table without partitions has files of older specs in a part.
        partition = first.partition if first.spec_id == current else {}
    file = new_data_file(table, document, current, partition, order)
    return file.of_number(table.snapshot.sequence_number if table.snapshot else None)


def _part(table: PinnedTable, result: PartResult) -> Part:
    is_of_deletes = isinstance(result.part.native, DeletesPart)
    return (_RewrittenDeletes if is_of_deletes else CompactedPart).of(table, result)


def _changes(base: PinnedTable, latest: PinnedTable, parts: Sequence[Part]) -> Changes:
    rewritten = [part for part in parts if isinstance(part, _RewrittenDeletes)]
    deletes = [each for part in rewritten for each in part.after]
    removed = {key: each for part in rewritten for key, each in part.removed.items()}
    parts = [part for part in parts if isinstance(part, CompactedPart)]
    before = [file for part in parts for file in part.before]
    for file in before:
        removed |= {each.key: each for each in (file.entry, *file.own_deletes)}
    if any(len(file.own_deletes) < len(file.all_deletes) for file in before):
        removed |= _dangling(base, latest, {file.entry.key for file in before})
    added = [file for part in parts for file in part.after]
    shared = shared_files(base.lean_files, removed)
    return Changes(added, deletes, removed, [], replaces=True, shared=shared)


def _dangling(
    base: PinnedTable, latest: PinnedTable, removed: Collection[FileKey]
) -> Mapping[FileKey, ManifestEntry]:
    """The files of deletes that apply to no file of ``latest`` but those ``removed``.

    Those that came after ``base`` still apply to the new files.
    """
    number = base.snapshot.sequence_number if base.snapshot else 0
    applied: dict[FileKey, ManifestEntry] = {}
    needed: set[FileKey] = set()
    for file in latest.lean_files:
        if file.entry.key in removed:
            applied |= {each.key: each for each in file.all_deletes}
        else:
            needed.update(each.key for each in file.all_deletes)
    return {
        key: entry
        for key, entry in applied.items()
        if key not in needed and entry.sequence_number <= number
    }


def _place(table: PinnedTable, partition: Mapping[int, Any]) -> Mapping[str, str | None]:
    """A partition of the current spec, as text: entries have decimals as bytes."""
    return texts_of(named_partition(table, table.metadata.default_spec_id, partition))


def _lost(base: PinnedTable, gap: Gap, parts: Iterable[Part]) -> frozenset[int]:
    """The numbers of the parts that do not fit the table after the commits in ``gap``."""
    if gap.commits and may_have_got_ids(base):
        return frozenset(part.result.part.number for part in parts)
    gone = {each.key for commit in gap.commits for each in commit.removed}
    deletes = [each for commit in gap.commits for each in commit.delete_files]
    return frozenset(part.result.part.number for part in parts if part.is_lost(base, gone, deletes))
