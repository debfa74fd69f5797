"""The life of a write: guard the base, publish the fragments as one snapshot, or clean up."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon import index_library, library
from spark_jobs.connectors.paimon.commit_messages import commit_messages
from spark_jobs.connectors.paimon.conflicts import refuse_changes_since, to_job_error
from spark_jobs.connectors.paimon.guard import FIRST_SNAPSHOT, BaseGuard
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.native import PaimonTable, native
from spark_jobs.connectors.paimon.publish import Publication, SnapshotStore
from spark_jobs.connectors.paimon.sequence_numbers import place_of
from spark_jobs.connectors.paimon.sink import PaimonSinkFactory, SourceFile
from spark_jobs.connectors.paimon.table_layout import (
    data_file_prefix,
    new_file_layout,
    rewrite_share,
)
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, TableHandle
from spark_jobs.spi.writes import Fragment, MergeHandle, MergeWrite

COMMIT_IDENTIFIER: Final = 1
_PUBLISH_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class PaimonMerge:
    """A merge that has begun."""

    operation_id: str
    name_prefix: str
    index_prefix: str


class PaimonMergeWrites:
    """Implements ``ConnectorMergeWrites`` for append tables."""

    def __init__(
        self, metadata: PaimonMetadata, filesystem: pafs.FileSystem, snapshots: SnapshotStore
    ) -> None:
        self._metadata = metadata
        self._filesystem = filesystem
        self._snapshots = snapshots

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        """Guard the base snapshot and describe the sinks; no data file is made."""
        target = native(table)
        operation_id = write.operation.operation_id
        token = uuid.uuid4()
        prefix, index_prefix = f"{data_file_prefix(target)}{token}-", f"index-{token}-"
        sinks = PaimonSinkFactory(
            name_prefix=prefix,
            index_prefix=index_prefix,
            index_directory=index_library.index_directory(target.table),
            rewrite_share=rewrite_share(target, write.rewrite_share),
            files={file.ordinal: _source_file(target, file) for file in write.files},
            assigned_columns=write.assigned_columns,
            layout=new_file_layout(target, self._filesystem, write.target_file_size),
        )
        self._guard(table, operation_id).set(table.snapshot_id)
        return MergeHandle(sinks, PaimonMerge(operation_id, prefix, index_prefix))

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

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        """Publish the fragments as one snapshot on top of the base.

        Raises:
            CommitError: COMMIT_CONFLICT (nothing was published) or COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE (nothing was published).
        """
        user = handle.native.operation_id
        current = native(self._metadata.load_table(table.name))
        if library.schema_id(current.table) != library.schema_id(native(table).table):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"The schema of {table.name} was changed while the statement ran.",
                "Run the statement again: it will read the table's new schema.",
            )
        messages = commit_messages(
            native(table), fragments, self._filesystem, handle.native.index_prefix
        )
        for _ in range(_PUBLISH_ATTEMPTS):
            latest = library.latest_snapshot(current.table)
            refuse_changes_since(current.table, native(table).snapshot, latest)
            checked_id = latest.id if latest else FIRST_SNAPSHOT - 1
            directory = f"{current.branch_path}/snapshot"
            publication = Publication(self._snapshots, directory, checked_id)
            _attempt(current, publication, user, messages, properties)
            if _is_published(current, publication):
                return CommittedSnapshot(checked_id + 1, dict(properties))
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT,
            f"Other writers were faster than this one {_PUBLISH_ATTEMPTS} times.",
            "Run the statement again when fewer writers are at work on the table.",
        )

    def abort_merge(
        self, table: TableHandle, handle: MergeHandle, fragments: Sequence[Fragment]
    ) -> None:
        """Remove every file of the write, known from a fragment or not, and the guard.

        Nothing is removed when the operation did make a snapshot after all.
        """
        del fragments
        if self.find_commit(table, handle.native.operation_id) is not None:
            return
        external = native(table).external
        for root in (native(table).path, *(external.roots if external else ())):
            self._remove_files(root, (handle.native.name_prefix, handle.native.index_prefix))
        self._guard(table, handle.native.operation_id).release()

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        """Let the base snapshot of a finished operation expire."""
        self._guard(table, operation_id).release()

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        """The snapshot that this operation made, searched from the latest one back.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED when snapshots since the guarded base are gone.
        """
        target = native(table)
        snapshots = library.retained_snapshots(target.table)
        for snapshot in reversed(snapshots):
            identity = (snapshot.commit_user, snapshot.commit_identifier)
            if identity == (operation_id, COMMIT_IDENTIFIER):
                return CommittedSnapshot(snapshot.id, dict(snapshot.properties or {}))
        base = self._guard(table, operation_id).base()
        if base is None or not snapshots:
            return None
        retained = {snapshot.id for snapshot in snapshots}
        missing = [i for i in range(base, snapshots[-1].id + 1) if i not in retained]
        if missing:
            raise CommitError(
                ErrorCode.COMMIT_HISTORY_EXPIRED,
                f"Snapshot {missing[0]} of {table.name} has expired, so whether operation "
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
        return BaseGuard(self._filesystem, native(table).branch_path, operation_id)


def _attempt(
    table: PaimonTable,
    publication: Publication,
    user: str,
    messages: Sequence[Any],
    properties: Mapping[str, str],
) -> None:
    """Have the snapshot prepared and handed to ``publication``, which knows the outcome."""
    failure = None
    try:
        library.commit_once(table.table, publication, user, COMMIT_IDENTIFIER, messages, properties)
    except RuntimeError as error:
        failure = error
    if publication.called:
        return
    if failure is None:
        failure = RuntimeError("there is nothing to commit")
    raise to_job_error(failure) from failure


def _is_published(table: PaimonTable, publication: Publication) -> bool:
    """Whether our snapshot is there; False: another writer took its id.

    Raises:
        CommitError: COMMIT_OUTCOME_UNKNOWN.
        InternalError: STORAGE_UNAVAILABLE, it is certainly not there.
    """
    failure, attempted = publication.failure, publication.snapshot
    if failure is None or attempted is None:
        return publication.published
    try:
        found = library.find_snapshot(table.table, attempted.id)
    except (OSError, RuntimeError, ValueError) as error:
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"Storing snapshot {attempted.id} failed ({failure}), and so did looking for it.",
            "Run the statement again: it looks for its own snapshot first.",
        ) from error
    if found is not None and found.uuid == attempted.uuid:
        return True
    raise InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"Snapshot {attempted.id} could not be stored: {failure}",
        "Nothing was published. Check the warehouse's storage, then run the statement again.",
    ) from failure


def _source_file(table: PaimonTable, file: PlannedFile) -> SourceFile:
    vector = table.vectors.get(file.path.rpartition("/")[2])
    entry = table.located_entries[file.ordinal][1]
    is_external = entry.file.external_path is not None
    directory = table.bucket_directory(place_of(entry)) if is_external else None
    return SourceFile(file.path, file.row_count, file.size, vector, directory)
