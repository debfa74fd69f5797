"""The lifecycle of a write: begin it, drop files, then publish or abort it. Driver only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.begin_merge import PaimonMerge, begin_merge
from spark_jobs.connectors.paimon.commit.changes import partitions_of
from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.commit.history import find_commit, history, recall
from spark_jobs.connectors.paimon.commit.merge_commit import MergeCommit
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore, store_schema
from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.library import (
    index_manifest,
    manifest_files,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.write.keyed_sink import pending_records
from spark_jobs.connectors.paimon.write.sink import SmallFilesReader, new_file, place_of
from spark_jobs.connectors.shared.write.new_rows import small_files
from spark_jobs.errors import CommitError
from spark_jobs.spi.marks import TableHistory
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Repacking
from spark_jobs.storage.files import in_parallel
from spark_jobs.storage.removal import remove_with_prefixes


class PaimonMergeWrites:
    """Implements ``ConnectorMergeWrites`` for append tables."""

    def __init__(
        self, metadata: PaimonMetadata, filesystem: pafs.FileSystem, snapshots: SnapshotStore
    ) -> None:
        self._metadata = metadata
        self._filesystem = filesystem
        self._snapshots = snapshots

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Guard the base snapshot, except in a dry run, and describe the sinks."""
        return begin_merge(self._filesystem, table, write)

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        """Fragments that remove whole ``files``.

        Raises:
            NotSupportedError: their bucket has records that batch readers do not see yet, which
                would remain.
        """
        del handle
        target = pinned_table(table)
        _refuse_pending(target, files)
        return [
            Fragment(
                {"removed": file.ordinal, "added": None},
                files_removed=len(target.files.units[file.ordinal].files),
                bytes_removed=file.size,
            )
            for file in files
        ]

    def repacking(
        self, table: TableHandle, handle: MergeHandle, fragments: Sequence[Fragment]
    ) -> Repacking | None:
        """The new files of updates on deletion vectors, and of scattered rows, if too many."""
        target, write = pinned_table(table), handle.native.write
        appends = target.marks_rows and target.keyed is None and not target.evolves_columns
        if not write.scattered and not (appends and any(write.assigned_columns)):
            return None
        groups = small_files(fragments, write.target_file_size, place_of)
        if not groups:
            return None
        reader = SmallFilesReader(self._filesystem, table_schema.arrow_schema(target.table))
        parts = {index: new_file(fragments[index]) for group in groups for index in group}
        return Repacking(groups, reader, parts)

    def discard(self, handle: MergeHandle, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments that will not be published."""
        del handle
        in_parallel(self._filesystem.delete_file, [new_file(each).path for each in fragments])

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        """The partitions of files that are added, removed or have rows marked."""
        return partitions_of(pinned_table(table), fragments)

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish the fragments as one snapshot, after any commits that do not conflict."""
        commit = MergeCommit(
            self._metadata, self._filesystem, self._snapshots, table, handle.native, properties
        )
        return commit.run(fragments)

    def store_schema(self, table: TableHandle) -> None:
        """Store the schema of an evolved table for which there is no snapshot to publish."""
        store_schema(self._metadata, self._snapshots, table)

    def abort_merge(self, table: TableHandle, handle: MergeHandle) -> None:
        """Remove every file of the write, whether or not a fragment names it, and the guard.

        Nothing is removed if a snapshot turns out to hold this write; a dry run leaves nothing.
        """
        if not handle.native.write.dry_run:
            _abort(self._filesystem, table, handle.native)

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Let the base snapshot of a finished operation expire."""
        guard_of(self._filesystem, pinned_table(table), operation_id).release()

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that the operation committed, searched for from the latest one backwards."""
        return find_commit(self._filesystem, table, operation_id)

    def recall(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
        """The snapshot of this id, if the table has it."""
        return recall(table, snapshot_id)

    def history(self, table: TableHandle) -> TableHistory:
        """What the snapshots up to the pinned one record."""
        return history(table)


def _refuse_pending(table: PinnedTable, files: Sequence[PlannedFile]) -> None:
    if not table.files.pending_buckets:
        return
    removed = {file.ordinal for file in files}
    touched = {bucket_key_of(table.files.unit_entries(each)[0]) for each in removed}
    for ordinal, unit in enumerate(table.files.units):
        place = bucket_key_of(table.files.unit_entries(ordinal)[0])
        if unit.is_pending and ordinal not in removed and _overrules(place, touched):
            raise pending_records(table.schema.partition_keys, place)


def _overrules(pending: BucketKey, touched: Collection[BucketKey]) -> bool:
    """Whether pending records of a bucket belong, or may belong, to a bucket in ``touched``."""
    if pending.bucket == POSTPONED:
        return any(each.partition == pending.partition for each in touched)
    return pending in touched


def _abort(filesystem: pafs.FileSystem, table: TableHandle, begun: PaimonMerge) -> None:
    """Remove every file of the write, and the guard.

    The guard stays if another try of the operation committed a snapshot, or may have committed one
    that has expired. Nothing is removed if the operation's snapshot turns out to hold this write.
    """
    target = pinned_table(table)
    try:
        commit = find_commit(filesystem, table, begun.operation_id)
        needs_guard = commit is not None
    except CommitError:
        # This write certainly did not make any of the expired snapshots.
        commit, needs_guard = None, not begun.is_first
    prefixes = begun.prefixes
    if commit is not None and _has_files(target, commit, prefixes):
        return
    for root in (target.path, *(target.external.roots if target.external else ())):
        remove_with_prefixes(filesystem, root, prefixes)
    if not needs_guard:
        guard_of(filesystem, target, begun.operation_id).release()


def _has_files(table: PinnedTable, commit: CommittedSnapshot, prefixes: tuple[str, ...]) -> bool:
    """Whether the commit brought files whose names have one of these prefixes."""
    snapshot = stored_snapshots.find_snapshot(table.table, commit.snapshot_id)
    if snapshot is None:
        return True
    entries = manifest_files.changed_entries(table.table, snapshot)
    indexes = index_manifest.index_files(table.table, snapshot)
    names = [entry.file.file_name for entry in entries]
    names += [index_manifest.index_name(index.entry) for index in indexes]
    return any(name.startswith(prefixes) for name in names)
