"""Taking back what a run committed to a table, by one snapshot. Driver only."""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_jobs.connectors.iceberg.commit.changes import Changes, stored_anew
from spark_jobs.connectors.iceberg.commit.history import find_commit
from spark_jobs.connectors.iceberg.commit.manifest_records import NewDataFile, new_delete_file
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
    stored_deletes,
)
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.undo_plan import (
    RestoredFile,
    UndoPlan,
    first_of,
    history_of,
    planned,
)
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.read.scanned_files import delete_file
from spark_jobs.connectors.iceberg.table.manifests import DATA, FileKey, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.iceberg.write.table_layout import data_location, folder_of_new_version
from spark_jobs.connectors.shared.commit.commit_loop import before_publication, until_committed
from spark_jobs.connectors.shared.maintenance.undo import (
    base_report,
    files_expired,
    recorded_properties,
)
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName
from spark_jobs.contract.undo import TableUndo
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.undo import Undoing
from spark_jobs.storage.files import copy_files, in_parallel, remove_file


@dataclass(frozen=True, slots=True)
class IcebergUndo:
    """Implements ``ConnectorUndo``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata

    def earlier(self, name: TableName, undoing: Undoing) -> TableUndo | None:
        """What an earlier try of the operation did to the table."""
        table = pinned_table(self.metadata.load_table(name))
        committed = find_commit(table, undoing.properties[OPERATION_ID], None)
        if committed is None:
            return None
        return TableUndo(str(name), "undone", snapshot_id=committed.snapshot_id)

    def planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What would be done; nothing is stored."""
        return self._report(name, self._plan(name, undoing))

    def undone(self, name: TableName, undoing: Undoing) -> TableUndo:
        """Take back what the run committed."""
        files = RestoredFiles(name)
        try:
            return until_committed(lambda _number: self._attempt(name, undoing, files))
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                files.discard(pinned_table(self.metadata.load_table(name)))
            raise

    def _attempt(self, name: TableName, undoing: Undoing, files: RestoredFiles) -> TableUndo | None:
        """The report; None if another writer was faster."""
        plan = self._plan(name, undoing)
        report = self._report(name, plan)
        undoing.require_approved(report)
        if report.outcome == "unchanged":
            return report
        handle = self.metadata.load_table(name)
        table = plan.table
        with before_publication():
            changes = files.changes(plan)
        base = None if table.snapshot is None else int(table.snapshot.snapshot_id)
        recorded = recorded_properties(name, undoing, plan.commits, base)
        commits = SnapshotCommits(self.catalog, self.metadata, handle)
        done = commits.publish(table, changes, recorded, undoing.require_wanted)
        if done is None:
            return None
        return replace(report, outcome="undone", snapshot_id=done.snapshot_id)

    def _plan(self, name: TableName, undoing: Undoing) -> UndoPlan:
        handle = self.metadata.load_table(name)
        table = pinned_table(handle)
        plan = planned(name, table, undoing)
        if not plan.is_empty:
            self.metadata.require_writable(handle)
            _require_files(name, plan)
        return plan

    def _report(self, name: TableName, plan: UndoPlan) -> TableUndo:
        report = base_report(name, plan.commits, *first_of(history_of(plan.table)))
        data = [each for each in plan.gone.values() if each.content == DATA]
        copied = [each.entry.size for each in plan.back]
        copied += [each.size for each in plan.marks]
        copied += [each.size for file in plan.back for each in file.deletes]
        return replace(
            report,
            outcome="unchanged" if plan.is_empty else report.outcome,
            files_removed=len(data),
            files_restored=len(plan.back),
            deletes_restored=len(plan.gone) - len(data) + len(plan.marks),
            bytes_copied=sum(copied),
        )


def _require_files(name: TableName, plan: UndoPlan) -> None:
    """Check that all files that must come back are there."""
    storage = plan.table.storage
    needed = [each.entry.path for each in plan.back]
    needed += [each.path for file in plan.back for each in file.deletes]
    needed += [each.path for each in plan.marks]
    found = in_parallel(
        lambda each: storage.filesystem.get_file_info(storage.path(each)).is_file, needed
    )
    for path, is_there in zip(needed, found, strict=True):
        if not is_there:
            raise files_expired(name, path)


class RestoredFiles:
    """Writes the files of an undo, each once for all attempts to publish it.

    The names of all files begin with one token.
    """

    def __init__(self, name: TableName) -> None:
        self._name = name
        self._token = uuid.uuid4().hex
        self._data: dict[tuple[FileKey, ...], tuple[NewDataFile, NewDataFile | None]] = {}
        self._marks: dict[FileKey, NewDataFile] = {}
        self._written: list[str] = []

    def changes(self, plan: UndoPlan) -> Changes:
        """The changes of a plan, whose files are written.

        Raises:
            CommitError: COMMIT_HISTORY_EXPIRED: a file is gone.
            OSError: the storage refused.
        """
        table = plan.table
        try:
            self._copy(table, [each for each in plan.back if _key(each) not in self._data])
            for entry in plan.marks:
                if entry.key not in self._marks:
                    self._marks[entry.key] = self._mark(table, entry)
        except FileNotFoundError as error:
            raise files_expired(self._name, str(error.filename or error)) from error
        pairs = [self._data[_key(each)] for each in plan.back]
        deletes = [each for _, each in pairs if each is not None]
        deletes += [self._marks[each.key] for each in plan.marks]
        added = [data for data, _ in pairs]
        return Changes(added, deletes, plan.gone, [], overwrites=bool(added or deletes))

    def discard(self, table: PinnedTable) -> None:
        """Remove all files; nothing of them was published."""
        for path in self._written:
            remove_file(table.storage.filesystem, path)
        self._written.clear()

    def _copy(self, table: PinnedTable, files: Sequence[RestoredFile]) -> None:
        """Copy data files, and write their deletes for the copies."""
        storage, pairs = table.storage, []
        for each in files:
            path = storage.path(each.entry.path)
            suffix = posixpath.splitext(path)[1]
            pairs.append((path, self._new_path(table, path, suffix)))
        copy_files(storage.filesystem, pairs)
        for file, (_, path) in zip(files, pairs, strict=True):
            location = storage.location(path, table.metadata.location)
            entry = file.entry
            data = NewDataFile(
                entry.spec_id,
                entry.partition,
                {**entry.record, "file_path": location},
                entry.sequence_number,
                entry.file_sequence_number,
            )
            self._data[_key(file)] = data, self._deletes(table, file, location)

    def _deletes(self, table: PinnedTable, file: RestoredFile, copy: str) -> NewDataFile | None:
        """The deletes of a data file, for its copy."""
        entry = file.entry
        if not file.deletes:
            return None
        filesystem = table.storage.filesystem
        own = tuple(delete_file(table, each) for each in file.deletes)
        found = DataFileDeletes(0, entry.path, entry.row_count, own)
        positions = DeletedRows(filesystem).positions(found)
        if not len(positions):
            return None
        number = max(each.sequence_number for each in file.deletes)
        copied = _moved(entry, copy)
        as_vector = table.has_vectors
        ending = "-deletes.puffin" if as_vector else "-deletes.parquet"
        path = self._new_path(table, table.storage.path(entry.path), ending)
        document = stored_deletes(filesystem, path, copy, positions, as_vector=as_vector)
        return new_delete_file(table, document, copied).of_number(number)

    def _mark(self, table: PinnedTable, entry: ManifestEntry) -> NewDataFile:
        """The deletes of a file that stays, in a file of their own."""
        storage, path = table.storage, table.storage.path(entry.path)
        if entry.is_vector:
            own = self._new_path(table, path, "-deletes.puffin")
            return stored_anew(table, entry, own).of_number(entry.sequence_number)
        copy = self._new_path(table, path, "-deletes.parquet")
        copy_files(storage.filesystem, [(path, copy)])
        location = storage.location(copy, table.metadata.location)
        record = {**entry.record, "file_path": location}
        return NewDataFile(entry.spec_id, entry.partition, record, entry.sequence_number)

    def _new_path(self, table: PinnedTable, beside: str, suffix: str) -> str:
        root = table.storage.path(data_location(table))
        folder = folder_of_new_version(root, beside)
        path = f"{folder}/{self._token}-{len(self._written)}{suffix}"
        self._written.append(path)
        return path


def _key(file: RestoredFile) -> tuple[FileKey, ...]:
    return file.entry.key, *(each.key for each in file.deletes)


def _moved(entry: ManifestEntry, location: str) -> ManifestEntry:
    return replace(entry, record={**entry.record, "file_path": location})
