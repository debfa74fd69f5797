"""The life of a write: guard the base, publish the fragments as one snapshot, or clean up."""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.changes import Changes, partitions_of
from spark_jobs.connectors.paimon.commit.commit_attempt import before_publication, commit_attempt
from spark_jobs.connectors.paimon.commit.conflicts import Gap, refuse_conflicts
from spark_jobs.connectors.paimon.commit.guard import BaseGuard
from spark_jobs.connectors.paimon.commit.new_snapshot import Commit
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.library import (
    index_manifest,
    manifest_files,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.table_handle import PaimonTable, paimon_table
from spark_jobs.connectors.paimon.write.sink import PaimonSinkFactory, SourceFile
from spark_jobs.connectors.paimon.write.table_layout import (
    data_file_prefix,
    new_file_layout,
    rewrite_share,
)
from spark_jobs.contract.properties import published_properties
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.discarding import discarding
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeHandle, MergeWrite
from spark_jobs.storage.parallel import in_parallel

COMMIT_IDENTIFIER: Final = 1
_PUBLISH_ATTEMPTS: Final = 50
_LONGEST_PAUSE: Final = 1.0
# Snapshots that are read before one of them is looked at.
_READ_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class PaimonMerge:
    """A merge that has begun.

    ``target`` is the table that its files are made for. ``is_first``: no other try of the
    operation, which may have committed, had left its guard.
    """

    target: PaimonTable
    write: MergeWrite
    name_prefix: str
    index_prefix: str
    is_first: bool

    @property
    def operation_id(self) -> str:
        """The operation, which is the commit's user."""
        return self.write.operation.operation_id


class PaimonMergeWrites:
    """Implements ``ConnectorMergeWrites`` for append tables."""

    def __init__(
        self, metadata: PaimonMetadata, filesystem: pafs.FileSystem, snapshots: SnapshotStore
    ) -> None:
        self._metadata = metadata
        self._filesystem = filesystem
        self._snapshots = snapshots

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Guard the base snapshot, unless it is a dry run, and describe the sinks."""
        target = paimon_table(table)
        operation_id = write.operation.operation_id
        token = uuid.uuid4()
        prefix, index_prefix = f"{data_file_prefix(target)}{token}-", f"index-{token}-"
        filesystem = discarding(self._filesystem) if write.dry_run else self._filesystem
        sinks = PaimonSinkFactory(
            name_prefix=prefix,
            index_prefix=index_prefix,
            index_directory=index_manifest.index_directory(target.table),
            rewrite_share=rewrite_share(target, write.rewrite_share),
            files=_source_files(target, write.files),
            assigned_columns=write.assigned_columns,
            layout=new_file_layout(target, filesystem, write.target_file_size),
        )
        is_first = write.dry_run or self._guard_base(table, operation_id)
        return MergeHandle(sinks, PaimonMerge(target, write, prefix, index_prefix, is_first))

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        """What removes ``files`` as they are."""
        del table, handle
        return [
            Fragment(
                {"removed": file.ordinal, "added": None},
                files_removed=1,
                bytes_removed=file.size,
            )
            for file in files
        ]

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        """The partitions of files that come, go or have rows marked."""
        return partitions_of(paimon_table(table), fragments)

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish the fragments as one snapshot, behind what others committed without a conflict.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
            JobError: of ``require_wanted`` (nothing was published).
        """
        base, begun = paimon_table(table), handle.native
        if not fragments and not begun.write.overwrites:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                "There is nothing to commit.",
                "This is a defect: report it with the statement.",
            )
        with before_publication():
            changes = Changes(
                base,
                fragments,
                self._filesystem,
                begun.index_prefix,
                overwrites=begun.write.overwrites,
            )
            gap = Gap(base)
        for attempt in range(_PUBLISH_ATTEMPTS):
            time.sleep(random.uniform(0, min(0.01 * attempt**2, _LONGEST_PAUSE)))  # noqa: S311
            with before_publication():
                latest = self._latest(table.name, begun.target)
                gap.read_up_to(latest.snapshot)
                _refuse_own_commit(gap, begun.operation_id)
                change = changes.behind(gap.added)
                refuse_conflicts(base, gap, change, begun.write.isolation, begun.write.region)
            found = published_properties(properties, attempt + 1, len(gap.commits))
            commit = Commit(begun.operation_id, COMMIT_IDENTIFIER, found)
            snapshot_id = commit_attempt(
                self._snapshots, latest, change, commit, begun.write.require_wanted
            )
            if snapshot_id is not None:
                return CommittedSnapshot(snapshot_id, found)
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Other writers were faster than this one {_PUBLISH_ATTEMPTS} times.",
            "Run the statement again when fewer writers are at work on the table.",
        )

    def _guard_base(self, table: TableHandle, operation_id: str) -> bool:
        """Guard the base; whether no other try had left a guard.

        Raises:
            CommitError: COMMIT_CONFLICT when it had expired before. No guard of this try stays: a
                later one would take it for that of a try that may have committed.
        """
        guard = self._guard(table, operation_id)
        is_first = guard.set(table.snapshot_id)
        try:
            self._require_base(table)
        except Exception:
            if is_first:
                guard.release()
            raise
        return is_first

    def _require_base(self, table: TableHandle) -> None:
        """Check that the base did not expire before it was guarded.

        Raises:
            CommitError: COMMIT_CONFLICT.
        """
        base = table.snapshot_id
        if base is not None and stored_snapshots.find_snapshot(paimon_table(table).table, base) is None:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Snapshot {base} of {table.name} expired before the statement began.",
                "Run the statement again; let more snapshots stay when they expire.",
            )

    def _latest(self, name: TableName, target: PaimonTable) -> PaimonTable:
        """The table as it is now.

        Raises:
            CommitError: COMMIT_CONFLICT when its schema is not that of ``target``.
        """
        latest = paimon_table(self._metadata.load_table(name))
        if _file_schema(latest) != _file_schema(target):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"The schema of {name} was changed while the statement ran.",
                "Run the statement again: it will read the table's new schema.",
            )
        return latest

    def abort_merge(
        self, table: TableHandle, handle: MergeHandle, fragments: Sequence[Fragment]
    ) -> None:
        """Remove every file of the write, known from a fragment or not, and the guard.

        The guard stays where another try of the operation made a snapshot, or may have made one
        that has expired. Nothing is removed when this write is in the snapshot after all; a dry run
        left nothing.
        """
        del fragments
        target, begun = paimon_table(table), handle.native
        if begun.write.dry_run:
            return
        try:
            commit = self.find_commit(table, begun.operation_id)
            needs_guard = commit is not None
        except CommitError:
            # What has expired was certainly not made by this write.
            commit, needs_guard = None, not begun.is_first
        prefixes = (begun.name_prefix, begun.index_prefix)
        if commit is not None and _has_files(target, commit, prefixes):
            return
        for root in (target.path, *(target.external.roots if target.external else ())):
            self._remove_files(root, prefixes)
        if not needs_guard:
            self._guard(table, begun.operation_id).release()

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Let the base snapshot of a finished operation expire."""
        self._guard(table, operation_id).release()

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that this operation made, searched from the latest one back.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED when snapshots since the guarded base are gone.
        """
        target = paimon_table(table)
        ids = stored_snapshots.snapshot_ids(target.table)
        base = self._guard(table, operation_id).base()
        # No try of the operation wrote anything before its guard was set.
        since = [i for i in reversed(ids) if base is None or i >= base]
        for start in range(0, len(since), _READ_AT_ONCE):
            chunk = since[start : start + _READ_AT_ONCE]
            for snapshot in in_parallel(partial(stored_snapshots.find_snapshot, target.table), chunk):
                if snapshot is not None and _made_by(snapshot, operation_id):
                    return CommittedSnapshot(snapshot.id, dict(snapshot.properties or {}))
        if base is None or not ids:
            return None
        retained = set(ids)
        missing = next((i for i in range(base, ids[-1]) if i not in retained), None)
        if missing is not None:
            raise CommitError(
                ErrorCode.COMMIT_HISTORY_EXPIRED,
                f"Snapshot {missing} of {table.name} has expired, so whether operation "
                f"{operation_id} was committed in it can not be known.",
                "Look at the table's rows; clear the task to run the statement once more.",
            )
        return None

    def _remove_files(self, root: str, prefixes: tuple[str, ...]) -> None:
        selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        for info in self._filesystem.get_file_info(selector):
            if info.base_name.startswith(prefixes):
                # Others may be removing files at the same time.
                with contextlib.suppress(FileNotFoundError):
                    self._filesystem.delete_file(info.path)

    def _guard(self, table: TableHandle, operation_id: str) -> BaseGuard:
        return BaseGuard(self._filesystem, paimon_table(table).branch_path, operation_id)


def _file_schema(table: PaimonTable) -> tuple[Any, ...]:
    """What new files depend on; the ids of a table that was dropped and made anew begin again."""
    schema = table.schema
    return table_schema.schema_id(table.table), schema.columns, schema.partition_keys, table.buckets


def _made_by(snapshot: Any, operation_id: str) -> bool:
    identity = (snapshot.commit_user, snapshot.commit_identifier)
    return bool(identity == (operation_id, COMMIT_IDENTIFIER))


def _has_files(table: PaimonTable, commit: CommittedSnapshot, prefixes: tuple[str, ...]) -> bool:
    """Whether files with names of these prefixes came with the commit."""
    snapshot = stored_snapshots.find_snapshot(table.table, commit.snapshot_id)
    if snapshot is None:
        return True
    entries = manifest_files.changed_entries(table.table, snapshot)
    indexes = index_manifest.index_files(table.table, snapshot)
    names = [entry.file.file_name for entry in entries]
    names += [index_manifest.index_name(index.entry) for index in indexes]
    return any(name.startswith(prefixes) for name in names)


def _refuse_own_commit(gap: Gap, operation_id: str) -> None:
    """Another driver of the same operation may have been faster."""
    for each in gap.commits:
        if _made_by(each.snapshot, operation_id):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Operation {operation_id} was committed as snapshot {each.snapshot.id} by another "
                "driver while this one ran.",
                "Run the statement again: it will find that commit.",
            )


def _source_files(table: PaimonTable, files: Sequence[PlannedFile]) -> dict[int, SourceFile]:
    buckets: dict[BucketKey, int] = {}
    found = {}
    for file in files:
        entry = table.located_entries[file.ordinal][1]
        place = bucket_key_of(entry)
        is_external = entry.file.external_path is not None
        found[file.ordinal] = SourceFile(
            path=file.path,
            row_count=file.row_count,
            size=file.size,
            bucket=buckets.setdefault(place, len(buckets)),
            vector=table.vectors.get(entry.file.file_name),
            directory=table.bucket_directory(place) if is_external else None,
        )
    return found
