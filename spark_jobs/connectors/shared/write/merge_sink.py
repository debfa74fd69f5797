"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or its deleted and updated rows are marked and the new versions of the
updated ones are written as new rows.

In tables whose rows have ids, old rows keep theirs, in files of their own. An UPDATE that moves a
row to another partition, and a repacked file, hand rows to the sink as new ones; they keep their
ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from spark_jobs.connectors.shared.write.new_rows import FileLayout, NewRowsWriter, TaskFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges, Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.datafiles.runs import distinct
from spark_jobs.datafiles.tracked_rows import TrackedColumns
from spark_jobs.datafiles.updated_rows import updated_rows
from spark_jobs.datafiles.values import encode_value
from spark_jobs.spi.rows import MOVED_FROM
from spark_jobs.spi.writes import Fragment

P = TypeVar("P")


class _ChangedFile(Protocol):
    """A file that the statement may change; ``folder`` is where its new version belongs."""

    @property
    def path(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def row_count(self) -> int: ...


S = TypeVar("S", bound=_ChangedFile)


@dataclass(frozen=True, slots=True)
class FileSinks(Generic[S, P]):
    """What the sinks of one write need.

    ``name_prefix`` begins the names of all data files that they create, and of no other files.
    ``files`` are by ordinal, ``assigned_columns`` by case number. A file is rewritten if the share
    of its rows that are deleted or updated is above ``rewrite_share``; None: always.
    """

    name_prefix: str
    files: Mapping[int, S]
    assigned_columns: tuple[tuple[str, ...], ...]
    layout: FileLayout[P]
    rewrite_share: float | None


class MergeSink(ABC, Generic[S, P]):
    """Stores the change rows of one task; ``tracked``: rows have ids, in these columns."""

    def __init__(
        self, write: FileSinks[S, P], files: TaskFiles, tracked: TrackedColumns | None
    ) -> None:
        self._write = write
        self._files = files
        self._filesystem = write.layout.files.filesystem
        self._new_path = partial(files.data_path, write.name_prefix)
        self._fragments: list[Fragment] = []
        self._new_rows = NewRowsWriter(write.layout, self._new_path)
        # The columns in which updated rows of marked files are written.
        self._updated_schema = schema = write.layout.files.schema
        self._tracked, self._old_rows = tracked, self._new_rows
        if tracked is not None:
            self._old_rows = NewRowsWriter(write.layout.of_old_rows(), self._new_path)
            self._updated_schema = self._old_rows.schema
            self._moved_rows = MovedRows(self._filesystem, tracked, self._ids_of)
        self._rows = RowPositionSink(
            schema, write.assigned_columns, self._change_file, self._insert
        )

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows: UPDATE and DELETE by file and position, then INSERT by place."""
        self._rows.take(batch)

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each file added, removed or replaced."""
        self._rows.finish()
        self._fragments += self._marks()
        for writer in dict.fromkeys((self._new_rows, self._old_rows)):
            for place, written in writer.finish():
                self._fragments.append(new_file(written, self._document(written, place)))
        return self._fragments

    def abort(self) -> None:
        """Remove all files of this sink."""
        self._new_rows.close_quietly()
        self._old_rows.close_quietly()
        self._files.remove()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values."""
        file = self._write.files[row_id[FILE_FIELD]]
        position, mappings = row_id[POSITION_FIELD], self._mappings(file)
        return read_row(self._filesystem, file.path, position, columns, mappings)

    def _insert(self, rows: pa.RecordBatch) -> None:
        if self._tracked is not None:
            self._moved_rows.store(rows, self._new_rows, self._old_rows)
        else:
            self._new_rows.write(rows)

    def _change_file(self, ordinal: int, changes: FileChanges) -> None:
        if self._tracked is not None:
            changes = self._tracked.without_numbers(changes)
        source = self._write.files[ordinal]
        deleted = self._deleted(source)
        gone = changes if deleted is None else changes.and_deleted(deleted)
        share, rows = self._write.rewrite_share, source.row_count
        if share is None or len(gone.positions) > min(share * rows, rows - 1):
            self._rewrite(ordinal, source, gone)
            return
        schema, mappings = self._updated_schema, self._mappings(source)
        for table in updated_rows(self._filesystem, source.path, changes, schema, mappings):
            self._append(source, table)
        self._mark(ordinal, source, changes, gone)

    def _rewrite(self, ordinal: int, source: S, gone: FileChanges) -> None:
        files, mappings = self._write.layout.files, self._mappings(source)
        old, new, codec = source.path, self._new_path(source.folder), files.compression
        written = rewrite(self._filesystem, old, new, gone, codec, mappings, files.schema)
        document: dict[str, Any] = {"removed": ordinal, "added": None}
        if written is None:
            self._fragments.append(Fragment.without_file(document, source.size))
            return
        document |= {"added": file_document(written), "assigned": list(gone.columns)}
        carried = source.row_count - len(gone.positions)
        self._fragments.append(
            Fragment.rewritten_file(document, source.size, written.size, carried)
        )

    @abstractmethod
    def _mappings(self, source: S) -> tuple[FieldMapping, ...] | None:
        """How the table's columns are found in a file; None: it has just these."""

    @abstractmethod
    def _deleted(self, source: S) -> Positions | None:
        """The rows that are marked as deleted already; None: there are no marks."""

    @abstractmethod
    def _ids_of(self, ordinal: int) -> FileIds:
        """How the ids of a file's rows are found, if rows have ids."""

    @abstractmethod
    def _append(self, source: S, rows: pa.Table) -> None:
        """Write new versions of updated rows, with the columns of ``_updated_schema``."""

    @abstractmethod
    def _mark(self, ordinal: int, source: S, changes: FileChanges, gone: FileChanges) -> None:
        """Mark the rows of ``changes``; ``gone`` are these and those that are marked already."""

    @abstractmethod
    def _marks(self) -> Iterable[Fragment]:
        """Write out marks and updated rows that are held; the fragments of files of marks."""

    @abstractmethod
    def _document(self, written: WrittenFile, place: P) -> Mapping[str, Any]:
        """The document of a file of new rows in ``place``."""


def new_file(written: WrittenFile, added: Mapping[str, Any]) -> Fragment:
    """The fragment of a file of new rows; ``added`` is its document."""
    document = {"removed": None, "added": added}
    return Fragment(document, files_added=1, bytes_added=written.size)


def file_document(written: WrittenFile, partition: Sequence[Any] | None = None) -> dict[str, Any]:
    """The JSON data of a new file; ``partition`` None: that of the file that it replaces."""
    return {
        "path": written.path,
        "size": written.size,
        "rows": written.rows,
        "partition": None if partition is None else [encode_value(each) for each in partition],
        "statistics": {name: each.to_json() for name, each in written.statistics.items()},
    }


class FileIds(NamedTuple):
    """A data file, and how the ids of its rows are found in it."""

    path: str
    mapping: FieldMapping


class Divided(NamedTuple):
    """INSERT rows: the ``new`` ones, and the ``old`` ones with ids and without numbers."""

    new: pa.RecordBatch
    old: pa.RecordBatch


class MovedRows:
    """Tells moved rows from new ones; ``ids_of`` a file by its ordinal."""

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        columns: TrackedColumns,
        ids_of: Callable[[int], FileIds],
    ) -> None:
        self._filesystem = filesystem
        self._columns = columns
        self._ids_of = ids_of

    def store(
        self, batch: pa.RecordBatch, new_rows: NewRowsWriter[Any], old_rows: NewRowsWriter[Any]
    ) -> None:
        """Write the rows of ``batch``, old ones to files of their own; raises as ``divided``."""
        new, old = self.divided(batch)
        if new.num_rows:
            new_rows.write(new)
        if old.num_rows:
            old_rows.write(old)

    def divided(self, batch: pa.RecordBatch) -> Divided:
        """The rows of ``batch``, in its order.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: an old row is not in its file.
        """
        names = [each.name for each in self._columns]
        if names[0] in batch.schema.names:
            return Divided(batch.slice(0, 0), batch)
        if MOVED_FROM not in batch.schema.names:
            return Divided(batch, batch.slice(0, 0))
        is_moved = batch.column(MOVED_FROM).is_valid()
        moved = batch.filter(is_moved)
        if not moved.num_rows:
            return Divided(batch, moved)
        ids = self._ids(moved.column(MOVED_FROM))
        columns = [*moved.columns, ids, pa.nulls(len(ids), pa.int64())]
        old = pa.RecordBatch.from_arrays(columns, [*moved.schema.names, *names])
        return Divided(batch.filter(pc.invert(is_moved)), old)

    def _ids(self, moved_from: pa.StructArray) -> pa.Array:
        files = pc.struct_field(moved_from, FILE_FIELD).to_numpy(zero_copy_only=False)
        positions = pc.struct_field(moved_from, POSITION_FIELD).to_numpy(zero_copy_only=False)
        ids = np.zeros(len(files), np.int64)
        for ordinal in distinct(files):
            rows = np.flatnonzero(files == ordinal)
            wanted, place = np.unique(positions[rows], return_inverse=True)
            ids[rows] = self._ids_in(self._ids_of(int(ordinal)), wanted)[place]
        return pa.array(ids)

    def _ids_in(self, file: FileIds, positions: Positions) -> Positions:
        """The ids of the rows at ``positions`` (ascending)."""
        mapping, name = file.mapping, file.mapping.field.name
        if mapping.source is None:
            missing = pa.chunked_array([mapping.missing(len(positions))])
            return np.asarray(mapping.filled(missing, positions), np.int64)
        scan = FileScan(self._filesystem, [mapping.field], {}, {name: mapping})
        with reading_file(file.path):
            id_columns = [table.column(name) for _, table in scan.rows_at(file.path, positions)]
            if any(each.null_count for each in id_columns):
                raise pa.ArrowInvalid("it lacks the ids of some rows")
        return np.concatenate([each.to_numpy() for each in id_columns])
