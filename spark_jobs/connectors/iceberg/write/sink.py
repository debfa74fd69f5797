"""The executor half of a merge: changes rows file by file, and writes new rows to new files.

A changed file is rewritten, or a file of position deletes marks its deleted and updated rows, and
the new versions of the updated rows are written as new ones. Never imports a table library.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    deleted_positions,
    write_deletes,
)
from spark_jobs.connectors.iceberg.format.file_columns import Constants, NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.schema import IcebergField, opaque_type
from spark_jobs.connectors.iceberg.write.new_rows import NewFileLayout, NewRowsWriter
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.loose_rows import LooseRows
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.datafiles.row_reader import read_row
from spark_jobs.datafiles.updated_rows import updated_rows
from spark_jobs.datafiles.values import encode_value
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that the statement may change; ``size`` is in bytes.

    ``folder`` is where its new version belongs; ``constants`` are the values of its partition.
    ``own`` are its deletes that are about no other file: a new file of deletes replaces them.
    """

    path: str
    size: int
    folder: str
    deletes: DataFileDeletes
    constants: Constants
    own: DataFileDeletes


@dataclass(frozen=True, slots=True)
class IcebergSinkFactory:
    """Makes the sinks of one write.

    ``files`` are by ordinal, ``fields`` the table's columns, ``names`` its name mapping,
    ``assigned_columns`` by case number. ``name_prefix`` begins the names of all files that sinks of
    this write create, and of no other files. A file is rewritten if the share of its rows that are
    deleted or updated is above ``rewrite_share``; None: always.
    """

    name_prefix: str
    files: Mapping[int, SourceFile]
    fields: tuple[IcebergField, ...]
    names: NameMapping | None
    assigned_columns: tuple[tuple[str, ...], ...]
    layout: NewFileLayout
    rewrite_share: float | None = None

    def open(self, task_key: str) -> IcebergMergeSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return IcebergMergeSink(self, task_key)


class IcebergMergeSink:
    """Stores the change rows of one task."""

    def __init__(self, factory: IcebergSinkFactory, task_key: str) -> None:
        self._factory = factory
        self._task = uuid.uuid5(uuid.NAMESPACE_OID, task_key).hex[:12]
        self._paths: list[str] = []
        self._fragments: list[Fragment] = []
        layout, assigned = factory.layout, factory.assigned_columns
        schema, self._filesystem = layout.files.schema, layout.files.filesystem
        self._opaque = [schema.field(f.name) for f in factory.fields if opaque_type(f.type)]
        self._new_rows = NewRowsWriter(layout, self._new_path)
        self._updated = LooseRows(layout.rows, layout.files.row_group_bytes, self._new_rows)
        self._rows = RowPositionSink(schema, assigned, self._change_file, self._insert)

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows: UPDATE and DELETE by file and position, then INSERT by partition."""
        self._rows.take(batch)

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each file added, removed or replaced."""
        self._rows.finish()
        self._updated.finish()
        for partition, written in self._new_rows.finish():
            values = [encode_value(each) for each in partition]
            document = {"removed": None, "added": _document(written, values)}
            self._fragments.append(Fragment(document, files_added=1, bytes_added=written.size))
        return self._fragments

    def abort(self) -> None:
        """Remove all files of this sink."""
        self._new_rows.close_quietly()
        for path in self._paths:
            try:
                self._filesystem.delete_file(path)
            except FileNotFoundError:
                continue

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values."""
        file = self._factory.files[row_id[FILE_FIELD]]
        mappings = self._mappings(file)
        return read_row(self._filesystem, file.path, row_id[POSITION_FIELD], columns, mappings)

    def _new_path(self, folder: str, kind: str = "") -> str:
        name = f"{self._factory.name_prefix}{self._task}-{len(self._paths)}{kind}.parquet"
        self._paths.append(posixpath.join(folder, name))
        return self._paths[-1]

    def _mappings(self, file: SourceFile) -> tuple[FieldMapping, ...]:
        with reading_file(file.path), self._filesystem.open_input_file(file.path) as stream:
            found = pq.ParquetFile(stream).schema_arrow
            return file_mappings(self._factory.fields, found, self._factory.names, file.constants)

    def _change_file(self, ordinal: int, changes: FileChanges) -> None:
        source = self._factory.files[ordinal]
        gone = changes
        if source.deletes.deletes:
            gone = changes.and_deleted(deleted_positions(self._filesystem, source.deletes))
        share, rows = self._factory.rewrite_share, source.deletes.row_count
        if share is None or len(gone.positions) > min(share * rows, rows - 1):
            self._rewrite(ordinal, source, gone)
            return
        self._append_updated(source, changes)
        self._mark(ordinal, source, changes)

    def _insert(self, rows: pa.RecordBatch) -> None:
        """Store new rows, with NULL in the columns that statements cannot use."""
        for field in self._opaque:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        self._new_rows.write(rows)

    def _append_updated(self, source: SourceFile, changes: FileChanges) -> None:
        """Write the new versions of updated rows to new files."""
        schema, mappings = self._factory.layout.files.schema, self._mappings(source)
        for table in updated_rows(self._filesystem, source.path, changes, schema, mappings):
            for batch in table.combine_chunks().to_batches():
                self._updated.take(batch)

    def _mark(self, ordinal: int, source: SourceFile, changes: FileChanges) -> None:
        own = deleted_positions(self._filesystem, source.own)
        path = self._new_path(source.folder, "-deletes")
        positions = np.union1d(changes.positions, own)
        size = write_deletes(self._filesystem, path, source.deletes.location, positions)
        deletes = {"path": path, "size": size, "rows": len(positions)}
        document = {"removed": None, "added": None, "marked": ordinal, "deletes": deletes}
        self._fragments.append(Fragment(document, bytes_added=size, deletion_vectors_added=1))

    def _rewrite(self, ordinal: int, source: SourceFile, gone: FileChanges) -> None:
        files, mappings = self._factory.layout.files, self._mappings(source)
        old, new, codec = source.path, self._new_path(source.folder), files.compression
        written = rewrite(self._filesystem, old, new, gone, codec, mappings, files.schema)
        carried = source.deletes.row_count - len(gone.positions)
        document: dict[str, Any] = {"removed": ordinal, "added": None}
        if written is None:
            found = Fragment.without_file(document, source.size)
        else:
            document |= {"added": _document(written, None), "assigned": list(gone.columns)}
            found = Fragment.rewritten_file(document, source.size, written.size, carried)
        self._fragments.append(found)


def _document(written: WrittenFile, partition: list[Any] | None) -> dict[str, Any]:
    """The JSON data of a new file; ``partition`` None: that of the file that it replaces."""
    return {
        "path": written.path,
        "size": written.size,
        "rows": written.rows,
        "partition": partition,
        "statistics": {name: each.to_json() for name, each in written.statistics.items()},
    }
