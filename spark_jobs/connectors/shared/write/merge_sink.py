"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or its deleted and updated rows are marked and the new versions of the
updated ones are written as new rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from spark_jobs.connectors.shared.write.new_rows import FileLayout, NewRowsWriter, TaskFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges, Positions
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.datafiles.row_reader import read_row
from spark_jobs.datafiles.updated_rows import updated_rows
from spark_jobs.datafiles.values import encode_value
from spark_jobs.spi.writes import Fragment


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
P = TypeVar("P")


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
    """Stores the change rows of one task."""

    def __init__(self, write: FileSinks[S, P], files: TaskFiles) -> None:
        self._write = write
        self._files = files
        self._filesystem = write.layout.files.filesystem
        self._new_path = partial(files.data_path, write.name_prefix)
        self._fragments: list[Fragment] = []
        self._new_rows = NewRowsWriter(write.layout, self._new_path)
        # The columns in which updated rows of marked files are written.
        self._updated_schema = schema = write.layout.files.schema
        self._rows = RowPositionSink(
            schema, write.assigned_columns, self._change_file, self._insert
        )

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows: UPDATE and DELETE by file and position, then INSERT by place."""
        self._rows.take(batch)

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each file added, removed or replaced."""
        self._rows.finish()
        self._fragments += self._finished()
        return self._fragments

    def abort(self) -> None:
        """Remove all files of this sink."""
        self._new_rows.close_quietly()
        self._files.remove()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values."""
        file = self._write.files[row_id[FILE_FIELD]]
        position, mappings = row_id[POSITION_FIELD], self._mappings(file)
        return read_row(self._filesystem, file.path, position, columns, mappings)

    def _change_file(self, ordinal: int, changes: FileChanges) -> None:
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
    def _insert(self, rows: pa.RecordBatch) -> None:
        """Write INSERT rows."""

    @abstractmethod
    def _append(self, source: S, rows: pa.Table) -> None:
        """Write new versions of updated rows, with the columns of ``_updated_schema``."""

    @abstractmethod
    def _mark(self, ordinal: int, source: S, changes: FileChanges, gone: FileChanges) -> None:
        """Mark the rows of ``changes``; ``gone`` are these and those that are marked already."""

    @abstractmethod
    def _finished(self) -> Iterator[Fragment]:
        """Write out marks and new rows; the fragments of their files."""


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
