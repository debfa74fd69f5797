"""The lifecycle of a write: begin it, drop files, then publish or abort it. Driver only."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.changes import changes_of
from spark_jobs.connectors.iceberg.commit.history import find_commit, history, recall
from spark_jobs.connectors.iceberg.commit.merge_commit import MergeCommit, store_schema
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.format.deletes import DeleteFile
from spark_jobs.connectors.iceberg.format.schema import opaque_type
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.read.planning import named_partition
from spark_jobs.connectors.iceberg.read.scanned_files import row_lineage, scanned_file
from spark_jobs.connectors.iceberg.table.commits import summary_of
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.table.refusals import refuse_spec
from spark_jobs.connectors.iceberg.write.sink import (
    IcebergSinkFactory,
    SmallFilesReader,
    SourceFile,
    new_path,
    place_of,
)
from spark_jobs.connectors.iceberg.write.table_layout import (
    data_location,
    folder_of_new_version,
    new_file_layout,
    rewrite_share,
    statement_of,
)
from spark_jobs.connectors.shared.write.new_rows import small_files
from spark_jobs.datafiles.discarding import discarding
from spark_jobs.errors import CommitError
from spark_jobs.spi.connector import ConnectorMergeWrites
from spark_jobs.spi.marks import TableHistory
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Repacking
from spark_jobs.storage.files import in_parallel
from spark_jobs.storage.removal import remove_with_prefixes

_WRITE = "merge.write-id"


@dataclass(frozen=True, slots=True)
class IcebergMerge:
    """A write that has begun; the names of all of its data files begin with ``token``.

    ``is_first``: no other try of the operation had noted its base, so none may have committed.
    """

    write: MergeWrite
    token: str
    is_first: bool
    filesystem: pafs.FileSystem


@dataclass(frozen=True, slots=True)
class IcebergMergeWrites(ConnectorMergeWrites):
    """Implements ``ConnectorMergeWrites``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata
    notes: BaseNotes

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Note the base snapshot, except in a dry run, and describe the sinks.

        Raises:
            NotSupportedError: a file cannot be read correctly here; gives the reason.
            CatalogError: METADATA_UNREADABLE.
        """
        target, token = pinned_table(table), uuid.uuid4().hex
        filesystem = target.storage.filesystem
        write_to = discarding(filesystem) if write.dry_run else filesystem
        layout = new_file_layout(target, write_to, write.target_file_size)
        sinks = IcebergSinkFactory(
            name_prefix=f"{token}-",
            files={
                each.ordinal: _source_file(target, table, each, layout.root) for each in write.files
            },
            fields=target.stored_fields,
            names=target.name_mapping,
            assigned_columns=write.assigned_columns,
            layout=layout,
            rewrite_share=rewrite_share(target, statement_of(write), write.rewrite_share),
            tracks_rows=target.has_lineage,
            writes_vectors=target.has_vectors,
        )
        is_first = write.dry_run or self.notes.set(write.operation.operation_id, target)
        return MergeHandle(sinks, IcebergMerge(write, token, is_first, write_to))

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        """Fragments that remove whole ``files``."""
        del table, handle
        return [
            Fragment.without_file({"removed": each.ordinal, "added": None}, each.size)
            for each in files
        ]

    def repacking(
        self, table: TableHandle, handle: MergeHandle, fragments: Sequence[Fragment]
    ) -> Repacking | None:
        """The new files of scattered rows, if they are too many for their size."""
        begun: IcebergMerge = handle.native
        if not begun.write.scattered:
            return None
        groups = small_files(fragments, begun.write.target_file_size, place_of)
        if not groups:
            return None
        target = pinned_table(table)
        layout = new_file_layout(target, target.storage.filesystem, begun.write.target_file_size)
        names = tuple(each.name for each in target.stored_fields if not opaque_type(each.type))
        parts = {index: new_path(fragments[index]) for group in groups for index in group}
        return Repacking(groups, SmallFilesReader(layout, names), parts)

    def discard(self, handle: MergeHandle, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments that will not be published."""
        filesystem = handle.native.filesystem
        in_parallel(filesystem.delete_file, [new_path(each) for each in fragments])

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        """The partitions of files that are added, removed or have rows marked."""
        target = pinned_table(table)
        changes = changes_of(target, fragments, overwrites=False)
        places = [(each.spec_id, each.partition) for each in changes.touched]
        places += [(each.spec_id, each.partition) for each in changes.added]
        return [named_partition(target, *place) for place in places]

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish the fragments as one snapshot, after any commits that do not conflict."""
        begun = handle.native
        recorded = {**properties, _WRITE: begun.token}
        commits = SnapshotCommits(self.catalog, self.metadata, table)
        return MergeCommit(commits, begun.write, recorded).run(fragments)

    def store_schema(self, table: TableHandle) -> None:
        """Store the schema of an evolved table for which there is no snapshot to publish."""
        if table.schema_changes:
            store_schema(MetadataCommits(self.catalog, self.metadata, table.name), table)

    def abort_merge(self, table: TableHandle, handle: MergeHandle) -> None:
        """Remove every file of the write, whether or not a fragment names it, and the note.

        Nothing is removed if a snapshot turns out to hold this write; a dry run leaves nothing.
        """
        begun: IcebergMerge = handle.native
        if begun.write.dry_run:
            return
        operation_id = begun.write.operation.operation_id
        latest = pinned_table(self.metadata.load_table(table.name))
        if any(summary_of(each).get(_WRITE) == begun.token for each in latest.metadata.snapshots):
            return
        root = latest.storage.path(data_location(pinned_table(table)))
        remove_with_prefixes(latest.storage.filesystem, root, (begun.token,))
        try:
            needs_note = self._found(latest, operation_id) is not None
        except CommitError:
            # This write certainly did not make any of the expired snapshots.
            needs_note = not begun.is_first
        if not needs_note:
            self.notes.remove(operation_id)

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Remove the note of a finished operation."""
        del table
        self.notes.remove(operation_id)

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that the operation committed, searched for from the latest one backwards."""
        return self._found(pinned_table(table), operation_id)

    def recall(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
        """The snapshot of this id, if it is in the branch's history."""
        return recall(pinned_table(table), snapshot_id)

    def history(self, table: TableHandle) -> TableHistory:
        """What the snapshots up to the pinned one record."""
        return history(pinned_table(table))

    def _found(self, table: PinnedTable, operation_id: str) -> CommittedSnapshot | None:
        return find_commit(table, operation_id, self.notes.get(operation_id, table))


def _source_file(
    target: PinnedTable, table: TableHandle, file: PlannedFile, root: str
) -> SourceFile:
    scanned = scanned_file(target, table.name, file.ordinal)
    refuse_spec(table.name, target, target.files[file.ordinal].entry.spec_id)
    with reading_metadata(target.place):
        live = target.files[file.ordinal]
        own = tuple(DeleteFile(target.storage.path(each.path)) for each in live.own_deletes)
        if target.has_vectors:
            # Beside a vector, no other position deletes apply.
            own = scanned.deletes.deletes
        lineage = row_lineage(target, live)
    return SourceFile(
        path=file.path,
        size=file.size,
        row_count=file.row_count,
        folder=folder_of_new_version(root, file.path),
        deletes=scanned.deletes,
        constants=scanned.constants,
        own=scanned.deletes._replace(deletes=own, by_value=None),
        lineage=lineage,
    )
