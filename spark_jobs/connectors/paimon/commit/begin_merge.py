"""Beginning a merge: guarding its base snapshot and describing its sinks. Driver only."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.library import index_manifest, stored_snapshots
from spark_jobs.connectors.paimon.read.planning import range_files
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.paimon.write.column_sink import ColumnSinkFactory, SourceRange
from spark_jobs.connectors.paimon.write.keyed_sinks import keyed_sinks
from spark_jobs.connectors.paimon.write.sink import PaimonSinkFactory, SourceFile
from spark_jobs.connectors.paimon.write.table_layout import (
    NamePrefixes,
    new_file_layout,
    rewrite_share,
)
from spark_jobs.datafiles.discarding import discarding
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.sinks import MergeHandle, MergeSinkFactory
from spark_jobs.spi.tables import PlannedFile, TableHandle
from spark_jobs.spi.writes import MergeWrite


@dataclass(frozen=True, slots=True)
class PaimonMerge:
    """A merge that has begun.

    ``target`` is the table that its files are written for, with names that begin with one of
    ``prefixes``. ``is_first``: there was no guard of
    another try of the operation, which may have committed.
    """

    target: PinnedTable
    write: MergeWrite
    prefixes: NamePrefixes
    is_first: bool

    @property
    def operation_id(self) -> str:
        """The operation's id, which is the snapshot's commit user."""
        return self.write.operation.operation_id


def begin_merge(filesystem: pafs.FileSystem, table: TableHandle, write: MergeWrite) -> MergeHandle:
    """Guard the base snapshot, except in a dry run, and describe the sinks.

    Raises:
        CommitError: COMMIT_CONFLICT: the base expired before it was guarded.
    """
    target = pinned_table(table)
    prefixes = NamePrefixes.of(target, str(uuid.uuid4()))
    sinks_write_to = discarding(filesystem) if write.dry_run else filesystem
    sinks: MergeSinkFactory
    if target.keyed is not None:
        sinks = keyed_sinks(target, target.keyed, write, filesystem, sinks_write_to, prefixes)
    elif target.evolves_columns:
        sinks = ColumnSinkFactory(
            name_prefix=prefixes.data,
            index_prefix=prefixes.indexes,
            index_directory=index_manifest.index_directory(target.table),
            ranges=_source_ranges(target, write.files),
            mappings=target.files.mappings,
            assigned_columns=write.assigned_columns,
            layout=new_file_layout(target, sinks_write_to, write.target_file_size),
        )
    else:
        sinks = PaimonSinkFactory(
            name_prefix=prefixes.data,
            index_prefix=prefixes.indexes,
            index_directory=index_manifest.index_directory(target.table),
            rewrite_share=rewrite_share(target, write.rewrite_share),
            files=_source_files(target, write.files),
            mappings=target.files.mappings,
            assigned_columns=write.assigned_columns,
            layout=new_file_layout(target, sinks_write_to, write.target_file_size),
            tracks_rows=target.tracks_rows,
        )
    is_first = write.dry_run or guard_base(filesystem, table, write.operation.operation_id)
    return MergeHandle(sinks, PaimonMerge(target, write, prefixes, is_first))


def guard_base(filesystem: pafs.FileSystem, table: TableHandle, operation_id: str) -> bool:
    """Guard the base snapshot; return True if no other try had left a guard.

    Raises:
        CommitError: COMMIT_CONFLICT: the base expired before it was guarded. This try then removes
            its own guard, from which a later try would conclude that this one may have committed.
    """
    guard = guard_of(filesystem, pinned_table(table), operation_id)
    is_first = guard.set(table.snapshot_id)
    try:
        _require_base(table)
    except Exception:
        if is_first:
            guard.release()
        raise
    return is_first


def _require_base(table: TableHandle) -> None:
    """Check that the base did not expire before it was guarded."""
    base = table.snapshot_id
    if base is None:
        return
    if stored_snapshots.find_snapshot(pinned_table(table).table, base) is None:
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Snapshot {base} of {table.name} expired before the statement began.",
            "Run the statement again; let more snapshots stay when they expire.",
        )


def _source_files(table: PinnedTable, files: Sequence[PlannedFile]) -> dict[int, SourceFile]:
    numbers: dict[BucketKey, int] = {}
    source_files = {}
    for file in files:
        entry = table.files.located_entries[file.ordinal][1]
        place = bucket_key_of(entry)
        is_external = entry.file.external_path is not None
        source_files[file.ordinal] = SourceFile(
            path=file.path,
            row_count=file.row_count,
            size=file.size,
            place=numbers.setdefault(place, len(numbers)),
            bucket=place.bucket,
            vector=table.files.vectors.get(entry.file.file_name),
            directory=table.files.bucket_directory(place) if is_external else None,
            schema_id=table.columns.mapped_schema(entry),
            identity=table.identity_of(entry),
        )
    return source_files


def _source_ranges(table: PinnedTable, files: Sequence[PlannedFile]) -> dict[int, SourceRange]:
    numbers: dict[BucketKey, int] = {}
    source_ranges = {}
    for file in files:
        anchor = table.files.unit_entries(file.ordinal)[0]
        place = bucket_key_of(anchor)
        source_ranges[file.ordinal] = SourceRange(
            files=range_files(table, file.ordinal),
            row_count=file.row_count,
            size=file.size,
            place=numbers.setdefault(place, len(numbers)),
            vector=table.files.vectors.get(anchor.file.file_name),
            directory=table.files.bucket_directory(place),
        )
    return source_ranges
