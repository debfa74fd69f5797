"""The executor half of a merge into a table with data evolution.

The assigned columns of a range with updated rows go to a new file, with the values of all its rows.
Deletion vectors mark deleted rows; new rows go to new files. Never imports a table library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.vectors import (
    VectorIndexWriter,
    VectorLocation,
    read_vector,
)
from spark_jobs.connectors.paimon.read.arrow_scan import RangeFile, column_files
from spark_jobs.connectors.paimon.write.file_layout import (
    NewFileLayout,
    PaimonTaskFiles,
    bucket_file_document,
    index_fragment,
    new_file_fragment,
)
from spark_jobs.connectors.shared.write.new_rows import NewRowsWriter
from spark_jobs.datafiles.column_files import ColumnFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.new_column_file import write_columns
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.datafiles.runs import distinct
from spark_jobs.spi.writes import Fragment


class SourceRange(NamedTuple):
    """A range whose rows the statement may change; ``files`` are the newest first.

    ``size`` is in bytes. ``place`` numbers the partitions, which may share folders. ``directory``
    is the table directory for files that accompany the anchor. A tuple, because every task
    unpickles all ranges of the statement.
    """

    files: tuple[RangeFile, ...]
    row_count: int
    size: int
    place: int
    vector: VectorLocation | None
    directory: str


@dataclass(frozen=True, slots=True)
class ColumnSinkFactory:
    """Makes the sinks of one write; ``ranges`` are by ordinal.

    Everything else is as in ``PaimonSinkFactory``.
    """

    name_prefix: str
    index_prefix: str
    index_directory: str | None
    ranges: Mapping[int, SourceRange]
    mappings: Mapping[int, tuple[FieldMapping, ...]]
    assigned_columns: tuple[tuple[str, ...], ...]
    layout: NewFileLayout

    def open(self, task_key: str) -> ColumnSink:
        """A sink with unique file names; ``task_key`` differs between attempts of a task."""
        return ColumnSink(self, task_key)


class ColumnSink:
    """Stores the change rows of one task."""

    def __init__(self, factory: ColumnSinkFactory, task_key: str) -> None:
        self._factory = factory
        self._files = PaimonTaskFiles(factory.layout, task_key)
        self._new_path = partial(self._files.data_path, factory.name_prefix)
        self._fragments: list[Fragment] = []
        self._filesystem = factory.layout.files.filesystem
        self._new_rows = NewRowsWriter(factory.layout, self._new_path)
        self._vectors = VectorIndexWriter(
            self._filesystem,
            factory.index_directory,
            partial(self._files.new_path, factory.index_prefix),
        )
        self._rows = RowPositionSink(
            factory.layout.files.schema,
            factory.assigned_columns,
            self._change_range,
            self._new_rows.write,
        )

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows: UPDATE and DELETE by range and position, then INSERT by partition."""
        self._rows.take(batch)

    def finish(self) -> list[Fragment]:
        """Write out what is pending; a fragment for each new file, and each range that is gone."""
        self._rows.finish()
        self._fragments += map(index_fragment, self._vectors.finish())
        for place, written in self._new_rows.finish():
            self._fragments.append(new_file_fragment(written, place))
        return self._fragments

    def abort(self) -> None:
        """Remove all files of this sink."""
        self._new_rows.close_quietly()
        self._files.remove()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """The values of ``columns`` in the target row, as Python values."""
        source, position = self._factory.ranges[row_id[FILE_FIELD]], row_id[POSITION_FIELD]
        others = np.delete(np.arange(source.row_count), position)
        _, rows = next(self._stored(source, columns).rows(others))
        return dict(rows.to_pylist()[0])

    def _stored(self, source: SourceRange, columns: Sequence[str]) -> ColumnFiles:
        """How ``columns`` of the range are read."""
        factory = self._factory
        fields = [field for field in factory.layout.files.schema if field.name in columns]
        files = column_files(source.files, [each.name for each in fields], factory.mappings)
        return ColumnFiles(self._filesystem, files, fields, {}, source.row_count)

    def _change_range(self, ordinal: int, changes: FileChanges) -> None:
        source = self._factory.ranges[ordinal]
        if changes.deleted.any():
            gone = changes.positions[changes.deleted]
            if source.vector is not None:
                gone = distinct(gone, read_vector(self._filesystem, source.vector))
            if len(gone) == source.row_count:
                self._fragments.append(
                    Fragment(
                        {"removed": ordinal, "added": None},
                        files_removed=len(source.files),
                        bytes_removed=source.size,
                    )
                )
                return
            self._vectors.add(ordinal, source.place, source.directory, gone)
        if changes.columns:
            self._write_columns(ordinal, source, changes.updates())

    def _write_columns(self, ordinal: int, source: SourceRange, changes: FileChanges) -> None:
        target = self._new_path(source.directory)
        stored = self._stored(source, tuple(changes.columns))
        written = write_columns(stored, target, changes, self._factory.layout.files.compression)
        document = {"column_file": {"range": ordinal, **bucket_file_document(written, None)}}
        self._fragments.append(Fragment(document, files_added=1, bytes_added=written.size))
