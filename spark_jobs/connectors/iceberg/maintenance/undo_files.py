"""The files that an undo writes: copies of data files, and their deletes. Driver only."""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile, new_delete_file
from spark_jobs.connectors.iceberg.commit.shared_vectors import stored_anew
from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
)
from spark_jobs.connectors.iceberg.format.vectors import stored_deletes
from spark_jobs.connectors.iceberg.maintenance.undo_plan import RestoredFile, UndoPlan
from spark_jobs.connectors.iceberg.read.scanned_files import delete_file
from spark_jobs.connectors.iceberg.table.manifests import FileKey, ManifestEntry
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.table_layout import data_location, folder_of_new_version
from spark_jobs.connectors.shared.maintenance.undo import files_expired
from spark_jobs.contract.request import TableName
from spark_jobs.storage.files import copy_files, remove_file


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
