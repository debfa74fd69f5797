"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a file of position deletes marks its deleted and updated rows, and
the new versions of the updated rows are written as new ones. Never imports a table library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
    write_deletes,
)
from spark_jobs.connectors.iceberg.format.file_columns import Constants, NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.schema import IcebergField, opaque_type
from spark_jobs.connectors.iceberg.write.file_layout import NewFileLayout, Partition
from spark_jobs.connectors.shared.write.merge_sink import (
    FileSinks,
    MergeSink,
    file_document,
    new_file,
)
from spark_jobs.connectors.shared.write.task_files import TaskFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges, Positions
from spark_jobs.datafiles.loose_rows import LooseRows
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the statement may change; ``size`` is in bytes.

    ``folder`` is where its new version belongs; ``constants`` are the values of its partition.
    ``own`` are its deletes that are about no other file: a new file of deletes replaces them.
    """

    path: str
    size: int
    row_count: int
    folder: str
    deletes: DataFileDeletes
    constants: Constants
    own: DataFileDeletes


@dataclass(frozen=True, slots=True)
class IcebergSinkFactory(FileSinks[SourceFile, Partition]):
    """Makes the sinks of one write.

    ``fields`` are the table's columns, ``names`` its name mapping. The names of files of deletes
    begin with ``name_prefix``, too.
    """

    layout: NewFileLayout
    fields: tuple[IcebergField, ...]
    names: NameMapping | None

    def open(self, task_key: str) -> IcebergMergeSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return IcebergMergeSink(self, task_key)


class IcebergMergeSink(MergeSink[SourceFile, Partition]):
    """Stores the change rows of one task; files of position deletes mark rows."""

    _write: IcebergSinkFactory

    def __init__(self, write: IcebergSinkFactory, task_key: str) -> None:
        layout, schema = write.layout, write.layout.files.schema
        super().__init__(write, TaskFiles(layout.files.filesystem, task_key))
        self._deleted_rows = DeletedRows(layout.files.filesystem)
        self._opaque = [schema.field(f.name) for f in write.fields if opaque_type(f.type)]
        self._updated = LooseRows(layout.rows, layout.files.row_group_bytes, self._new_rows)

    def _mappings(self, source: SourceFile) -> tuple[FieldMapping, ...]:
        with reading_file(source.path), self._filesystem.open_input_file(source.path) as stream:
            found = pq.ParquetFile(stream).schema_arrow
            return file_mappings(self._write.fields, found, self._write.names, source.constants)

    def _deleted(self, source: SourceFile) -> Positions | None:
        return None if source.deletes.are_none else self._deleted_rows.positions(source.deletes)

    def _insert(self, rows: pa.RecordBatch) -> None:
        """Store new rows, with NULL in the columns that statements cannot use."""
        for field in self._opaque:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        self._new_rows.write(rows)

    def _append(self, source: SourceFile, rows: pa.Table) -> None:
        del source
        for batch in rows.combine_chunks().to_batches():
            self._updated.take(batch)

    def _mark(
        self, ordinal: int, source: SourceFile, changes: FileChanges, gone: FileChanges
    ) -> None:
        del gone
        own = self._deleted_rows.positions(source.own)
        path = self._files.new_path(self._write.name_prefix, source.folder, "-deletes.parquet")
        positions = np.union1d(changes.positions, own)
        size = write_deletes(self._filesystem, path, source.deletes.location, positions)
        deletes = {"path": path, "size": size, "rows": len(positions)}
        document = {"removed": None, "added": None, "marked": ordinal, "deletes": deletes}
        self._fragments.append(Fragment(document, bytes_added=size, deletion_vectors_added=1))

    def _finished(self) -> Iterator[Fragment]:
        self._updated.finish()
        for place, written in self._new_rows.finish():
            yield new_file(written, file_document(written, place))
