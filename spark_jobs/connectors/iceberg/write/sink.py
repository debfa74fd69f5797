"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a file of position deletes, in version 3 a vector, marks its deleted
and updated rows, and the new versions of the updated rows are written as new ones. Rows that have
ids keep them. New files that are too many for their size are read once more. Never imports a table
library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
    stored_deletes,
)
from spark_jobs.connectors.iceberg.format.file_columns import Constants, NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.row_lineage import COLUMNS, RowLineage
from spark_jobs.connectors.iceberg.format.schema import IcebergField, opaque_type
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.connectors.iceberg.write.file_layout import NewFileLayout, Partition
from spark_jobs.connectors.shared.write.merge_sink import (
    FileIds,
    FileSinks,
    MergeSink,
    file_document,
)
from spark_jobs.connectors.shared.write.new_rows import TaskFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges, Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.loose_rows import LooseRows
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.runs import distinct
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the statement may change; ``size`` is in bytes.

    ``folder`` is where its new version belongs; ``constants`` are the values of its partition.
    ``own`` are the deletes that a new file of deletes, or a new vector, replaces. ``lineage`` tells
    the ids of its rows, if they have any.
    """

    path: str
    size: int
    row_count: int
    folder: str
    deletes: DataFileDeletes
    constants: Constants
    own: DataFileDeletes
    lineage: RowLineage | None = None


@dataclass(frozen=True, slots=True)
class IcebergSinkFactory(FileSinks[SourceFile, Partition]):
    """Makes the sinks of one write.

    ``fields`` are the table's columns, ``names`` its name mapping. The names of files of deletes
    begin with ``name_prefix``, too. ``tracks_rows``: rows have ids; ``writes_vectors``: they are
    marked by vectors.
    """

    layout: NewFileLayout
    fields: tuple[IcebergField, ...]
    names: NameMapping | None
    tracks_rows: bool = False
    writes_vectors: bool = False

    def open(self, task_key: str) -> IcebergMergeSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return IcebergMergeSink(self, task_key)


class IcebergMergeSink(MergeSink[SourceFile, Partition]):
    """Stores the change rows of one task; files of position deletes or vectors mark rows."""

    _write: IcebergSinkFactory

    def __init__(self, write: IcebergSinkFactory, task_key: str) -> None:
        layout, schema = write.layout, write.layout.files.schema
        files = TaskFiles(layout.files.filesystem, task_key)
        super().__init__(write, files, COLUMNS if write.tracks_rows else None)
        self._deleted_rows = DeletedRows(layout.files.filesystem)
        self._opaque = [schema.field(f.name) for f in write.fields if opaque_type(f.type)]
        self._updated = LooseRows(layout.rows, layout.files.row_group_bytes, self._old_rows)

    def _ids_of(self, ordinal: int) -> FileIds:
        source = self._write.files[ordinal]
        (mapping,) = (
            each for each in self._mappings(source) if each.field.name == COLUMNS.row_id.name
        )
        return FileIds(source.path, mapping)

    def _mappings(self, source: SourceFile) -> tuple[FieldMapping, ...]:
        with reading_file(source.path), self._filesystem.open_input_file(source.path) as stream:
            stored, names = stored_columns(source.path, stream), self._write.names
            columns = file_mappings(self._write.fields, stored, names, source.constants)
            lineage = source.lineage
            return columns if lineage is None else (*columns, *lineage.mappings(stored, names))

    def _deleted(self, source: SourceFile) -> Positions | None:
        return None if source.deletes.are_none else self._deleted_rows.positions(source.deletes)

    def _insert(self, rows: pa.RecordBatch) -> None:
        """Store new rows, with NULL in the columns that statements cannot use."""
        for field in self._opaque:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        super()._insert(rows)

    def _append(self, source: SourceFile, rows: pa.Table) -> None:
        del source
        for batch in rows.combine_chunks().to_batches():
            self._updated.take(batch)

    def _mark(
        self, ordinal: int, source: SourceFile, changes: FileChanges, gone: FileChanges
    ) -> None:
        del gone
        own = self._deleted_rows.positions(source.own)
        positions = distinct(changes.positions, own)
        location, vectors = source.deletes.location, self._write.writes_vectors
        ending = "-deletes.puffin" if vectors else "-deletes.parquet"
        path = self._files.new_path(self._write.name_prefix, source.folder, ending)
        deletes = stored_deletes(self._filesystem, path, location, positions, as_vector=vectors)
        document = {"removed": None, "added": None, "marked": ordinal, "deletes": deletes}
        self._fragments.append(
            Fragment(document, bytes_added=deletes["size"], deletion_vectors_added=1)
        )

    def _marks(self) -> Iterable[Fragment]:
        self._updated.finish()
        return ()

    def _document(self, written: WrittenFile, place: Partition) -> Mapping[str, Any]:
        return file_document(written, place)


def place_of(added: Mapping[str, Any]) -> str:
    """What the rows of a new file have in common: the partition."""
    return json.dumps(added["partition"])


def new_path(fragment: Fragment) -> str:
    """The path of the file that a fragment adds."""
    path: str = fragment.document["added"]["path"]
    return path


@dataclass(frozen=True, slots=True)
class SmallFilesReader:
    """Implements ``PartReader``: the rows of new files, by path. Picklable.

    ``columns`` are those that statements can use; the others are NULL in new rows.
    """

    layout: NewFileLayout
    columns: tuple[str, ...]

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            ``columns``, and those that the layout derives.
        """
        files, derived = self.layout.files, self.layout.rows.derived
        scan = FileScan(files.filesystem, [files.schema.field(name) for name in self.columns], {})
        for path in parts:
            with reading_file(path):
                for _, table in scan.rows(path, np.zeros(0, np.int64)):
                    for batch in table.combine_chunks().to_batches():
                        yield batch if derived is None else derived.added_to(batch)
