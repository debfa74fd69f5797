"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a deletion vector marks its deleted and updated rows, and the new
versions of the updated rows are appended to the file's bucket. Never imports a table library.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import file_mappings, without_numbers
from spark_jobs.connectors.paimon.format.vectors import VectorIndexWriter, read_vector
from spark_jobs.connectors.paimon.write.file_documents import (
    file_document,
    index_fragment,
    new_file_fragment,
)
from spark_jobs.connectors.paimon.write.moved_rows import MovedRows
from spark_jobs.connectors.paimon.write.new_rows import NewFileLayout, NewRowsWriter, in_bucket
from spark_jobs.connectors.paimon.write.source_file import SourceFile
from spark_jobs.connectors.paimon.write.task_files import TaskFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.datafiles.row_reader import read_row
from spark_jobs.datafiles.updated_rows import updated_rows
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class PaimonSinkFactory:
    """Makes the sinks of one write.

    ``files`` are by ordinal, ``mappings`` by id of an older schema, ``assigned_columns`` by case
    number. ``name_prefix`` begins the names of all data files that sinks of this write create, and
    of no other files. ``index_prefix`` does the same for index files, which belong in
    ``index_directory`` (None: beside the data files). A file is rewritten if the share of its rows
    that are deleted or updated is above ``rewrite_share``; None: always. ``tracks_rows``: rows have
    ids, which updated rows keep.
    """

    name_prefix: str
    index_prefix: str
    index_directory: str | None
    rewrite_share: float | None
    files: Mapping[int, SourceFile]
    mappings: Mapping[int, tuple[FieldMapping, ...]]
    assigned_columns: tuple[tuple[str, ...], ...]
    layout: NewFileLayout
    tracks_rows: bool = False

    def open(self, task_key: str) -> PaimonMergeSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return PaimonMergeSink(self, task_key)


class PaimonMergeSink:
    """Stores the change rows of one task."""

    def __init__(self, factory: PaimonSinkFactory, task_key: str) -> None:
        self._factory = factory
        self._files = TaskFiles(factory.layout, task_key)
        self._new_path = partial(self._files.data_path, factory.name_prefix)
        self._fragments: list[Fragment] = []
        self._filesystem = factory.layout.files.filesystem
        self._new_rows = NewRowsWriter(factory.layout, self._new_path)
        # Rows that have ids are in files of their own.
        self._old_rows = self._new_rows
        if factory.tracks_rows:
            self._old_rows = NewRowsWriter(factory.layout.of_tracked_rows(), self._new_path)
        self._moved_rows = MovedRows(self._filesystem, factory.files)
        self._vectors = VectorIndexWriter(
            self._filesystem,
            factory.index_directory,
            partial(self._files.index_path, factory.index_prefix),
        )
        self._rows = RowPositionSink(
            factory.layout.files.schema,
            factory.assigned_columns,
            self._change_file,
            self._insert,
        )

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows: UPDATE and DELETE by file and position, then INSERT by partition."""
        self._rows.take(batch)

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each file added, removed or replaced."""
        self._rows.finish()
        self._fragments += map(index_fragment, self._vectors.finish())
        for place, written in self._written_rows():
            self._fragments.append(new_file_fragment(written, place))
        return self._fragments

    def _written_rows(self) -> list[tuple[BucketKey, WrittenFile]]:
        written = self._new_rows.finish()
        return written if self._old_rows is self._new_rows else [*written, *self._old_rows.finish()]

    def abort(self) -> None:
        """Remove all files of this sink."""
        self._new_rows.close_quietly()
        self._old_rows.close_quietly()
        self._files.remove()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values."""
        file = self._factory.files[row_id[FILE_FIELD]]
        position, mappings = row_id[POSITION_FIELD], self._mappings_of(file)
        return read_row(self._filesystem, file.path, position, columns, mappings)

    def _mappings_of(self, file: SourceFile) -> tuple[FieldMapping, ...] | None:
        columns = self._factory.layout.files.schema
        return file_mappings(self._factory.mappings, columns, file.schema_id, file.identity)

    def _insert(self, batch: pa.RecordBatch) -> None:
        if not self._factory.tracks_rows:
            self._new_rows.write(batch)
            return
        new, old = self._moved_rows.divided(batch)
        if new.num_rows:
            self._new_rows.write(new)
        if old.num_rows:
            self._old_rows.write(old)

    def _change_file(self, ordinal: int, changes: FileChanges) -> None:
        source = self._factory.files[ordinal]
        if self._factory.tracks_rows:
            changes = without_numbers(changes)
        gone = changes
        if source.vector is not None:
            gone = changes.and_deleted(read_vector(self._filesystem, source.vector))
        if self._may_keep(source, len(gone.positions)):
            self._append_updated(source, changes)
            self._vectors.add(ordinal, source.place, _directory(source), gone.positions)
        else:
            self._rewrite(ordinal, source, gone)

    def _may_keep(self, source: SourceFile, gone: int) -> bool:
        """Whether to keep the file and mark its deleted and updated rows with a vector."""
        share = self._factory.rewrite_share
        if share is None:
            return False
        return gone < source.row_count and gone <= share * source.row_count

    def _append_updated(self, source: SourceFile, changes: FileChanges) -> None:
        """Write the new versions of updated rows to new files of their partition and bucket."""
        mappings, columns = self._mappings_of(source), self._old_rows.schema
        for table in updated_rows(self._filesystem, source.path, changes, columns, mappings):
            self._old_rows.write(in_bucket(table, source.bucket))

    def _rewrite(self, ordinal: int, source: SourceFile, changes: FileChanges) -> None:
        target = self._new_path(_directory(source))
        files, mappings = self._factory.layout.files, self._mappings_of(source)
        written = rewrite(
            self._filesystem,
            source.path,
            target,
            changes,
            files.compression,
            mappings,
            files.schema,
        )
        carried = source.row_count - len(changes.positions)
        self._fragments.append(_replacement(ordinal, source, written, carried))


def _directory(source: SourceFile) -> str:
    """The table directory for files that replace or accompany ``source``."""
    return source.directory or posixpath.dirname(source.path)


def _replacement(
    ordinal: int, source: SourceFile, written: WrittenFile | None, carried: int
) -> Fragment:
    if written is None:
        return Fragment.without_file({"removed": ordinal, "added": None}, source.size)
    document = {"removed": ordinal, "added": file_document(written, None)}
    return Fragment.rewritten_file(document, source.size, written.size, carried)
