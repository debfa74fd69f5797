"""Puts the rows of several data files into one parquet file, in their order.

Row groups that are large, have no deleted rows and are stored as the table stores them are copied
byte for byte. Everything else is decoded, from whatever format and schema, and encoded anew.

Memory: one row group as stored, and one in Arrow form that is being encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.field_mapping import (
    FieldMapping,
    recorded_columns,
    require_no_null,
    table_columns,
)
from spark_jobs.datafiles.file_changes import FileChanges, Positions, kept_rows
from spark_jobs.datafiles.file_formats import is_parquet
from spark_jobs.datafiles.parquet.copyable import LEAST_BYTES, LEAST_ROWS, CopyableFile
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.group_writer import GroupWriter
from spark_jobs.datafiles.parquet.whole_group import read_group
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.recorded_columns import require_recorded
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.row_groups import RowGroup, row_groups

# Files up to this size are read in one piece.
_WHOLE_BYTES: Final = 16 * 1024 * 1024
# What is decoded at once, in bytes before compression and in rows, as dictionaries grow.
_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_ROWS: Final = 128 * 1024

TakeRows = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A data file with ``row_count`` rows, of which those at ``deleted`` (ascending) are gone.

    ``mappings`` are of a file that does not have the table's columns, or is ORC or Avro.
    """

    path: str
    row_count: int
    deleted: Positions
    mappings: Sequence[FieldMapping] | None = None


def concatenate(
    filesystem: pafs.FileSystem, inputs: Iterable[InputFile], target: str, files: NewFiles
) -> WrittenFile | None:
    """Write the rows of ``inputs`` to ``target``, one of ``files``; None if no row is left.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE: an input is missing or damaged, does not hold what its
            schema says, or does not have ``row_count`` rows. LIBRARY_MISSING: a file is Avro, and
            fastavro is not installed.
        DataError: NOT_NULL_VIOLATION: an older file has NULLs in a column that must not have any.
        NotSupportedError: a file has INT96 timestamps that cannot be read rightly.
    """
    writer = GroupWriter(
        filesystem=files.filesystem,
        path=target,
        schema=files.schema,
        compression=files.compression,
        row_group_bytes=files.row_group_bytes,
    )
    try:
        for source in inputs:
            with _opened(filesystem, source) as stream:
                _Input(source, stream, files, writer.add_rows, writer).append()
        return writer.finish()
    except BaseException:
        writer.close_quietly()
        raise


def read_rows(
    filesystem: pafs.FileSystem, source: InputFile, files: NewFiles, take: TakeRows
) -> None:
    """Pass the rows of a file on, as ``files`` have them; raises as ``concatenate``."""
    with _opened(filesystem, source) as stream:
        _Input(source, stream, files, take).append()


@contextmanager
def _opened(filesystem: pafs.FileSystem, source: InputFile) -> Iterator[pa.NativeFile]:
    with (
        reading_file(source.path, filesystem),
        filesystem.open_input_file(source.path) as stream,
    ):
        yield stream


class _Input:
    """An open input file, whose rows ``take`` gets; large row groups are copied to ``copies``."""

    def __init__(
        self,
        source: InputFile,
        stream: pa.NativeFile,
        files: NewFiles,
        take: TakeRows,
        copies: GroupWriter | None = None,
    ) -> None:
        self._source = source
        self._stream = stream
        self._take = take
        self._copies = copies
        self._least_bytes = min(LEAST_BYTES, files.row_group_bytes)
        self._mappings = source.mappings or tuple(FieldMapping(each, each) for each in files.schema)
        self._recorded = recorded_columns(self._mappings)
        all_gone = np.ones(len(source.deleted), dtype=np.bool_)
        self._changes = FileChanges(source.deleted, all_gone, {})
        self._rows = 0

    def append(self) -> None:
        """Append all rows that are not deleted."""
        self._changes.require_valid(self._source.row_count, self._source.path)
        if is_parquet(self._source.path):
            self._append_parquet()
        else:
            self._append_groups()
        self._require_count(self._rows)

    def _append_parquet(self) -> None:
        size = self._stream.size()
        if size <= _WHOLE_BYTES:
            self._stream = pa.BufferReader(self._stream.read_buffer(size))
        file = pq.ParquetFile(self._stream, page_checksum_verification=True)
        self._require_count(file.metadata.num_rows)
        if any(file.schema.column(i).physical_type == "INT96" for i in range(len(file.schema))):
            self._append_groups()
            return
        require_recorded(file.schema_arrow, self._recorded)
        is_large = size >= self._least_bytes or file.metadata.num_rows >= LEAST_ROWS
        stored = None
        if is_large and self._copies is not None:
            stored = CopyableFile.of(self._stream, self._copies.form, self._mappings)
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            gone = len(self._changes.of_group(self._rows, rows).gone)
            if gone == rows:
                self._rows += rows
            elif (
                gone
                or stored is None
                or self._copies is None
                or not self._copied(stored, file, number, self._copies)
            ):
                for batch in _batches(file, number):
                    self._append_rows(pa.Table.from_batches([batch]))

    def _copied(
        self, stored: CopyableFile, file: pq.ParquetFile, number: int, writer: GroupWriter
    ) -> bool:
        """Copy a row group, if it is large."""
        group = stored.read(number, self._least_bytes)
        if group is None:
            return False
        pairs = zip(self._mappings, group.columns, strict=True)
        others = [mapping for mapping, column in pairs if column is None]
        leaves = stored.leaves({each.name for each in recorded_columns(others)})
        rows = pa.table({"": pa.nulls(group.row_count)})
        if leaves:
            rows = read_group(file, number, leaves)
        if rows.num_rows != group.row_count:
            raise pa.ArrowInvalid(f"its columns have {rows.num_rows} and {group.row_count} rows")
        positions = np.arange(self._rows, self._rows + group.row_count)
        writer.copy_group(group, self._of_table(rows, others, positions))
        self._rows += group.row_count
        return True

    def _append_groups(self) -> None:
        """Append the rows of ORC and Avro files, and of those with INT96 timestamps."""
        for group in row_groups(self._source.path, self._stream, self._recorded):
            self._append_rows(_table(group, self._recorded))

    def _append_rows(self, rows: pa.Table) -> None:
        """Append the next rows of the file, as decoded."""
        gone = self._changes.of_group(self._rows, rows.num_rows).gone
        positions = np.arange(self._rows, self._rows + rows.num_rows)
        self._rows += rows.num_rows
        if len(gone):
            positions = np.delete(positions, gone)
            rows = rows.filter(kept_rows(gone, rows.num_rows))
        self._take(self._of_table(rows, self._mappings, positions))

    def _of_table(
        self, rows: pa.Table, mappings: Sequence[FieldMapping], positions: Positions
    ) -> pa.Table:
        """Columns of the table, from rows as decoded."""
        columns = table_columns(rows, mappings, positions)
        for field, column in zip(columns.schema, columns.columns, strict=True):
            require_no_null(field, column, self._source.path)
        return columns

    def _require_count(self, rows: int) -> None:
        expected = self._source.row_count
        if rows != expected:
            raise pa.ArrowInvalid(f"it has {rows} rows, but should have {expected}")


def _batches(file: pq.ParquetFile, number: int) -> Iterator[pa.RecordBatch]:
    """A row group, decoded step by step."""
    group = file.metadata.row_group(number)
    rows = group.num_rows * _BATCH_BYTES // max(group.total_byte_size, 1)
    size = min(max(rows, 1), _BATCH_ROWS)
    batches: Iterator[pa.RecordBatch] = file.iter_batches(
        batch_size=size, row_groups=[number], use_threads=False
    )
    return batches


def _table(group: RowGroup, recorded: Sequence[pa.Field]) -> pa.Table:
    columns = {}
    for field in recorded:
        decoded = group.column(field.name)
        chunks = [group.values(field.name, chunk) for chunk in decoded.chunks]
        columns[field.name] = pa.chunked_array(chunks) if chunks else decoded
    # A table without columns would have no rows.
    return pa.table(columns or {"": pa.nulls(group.row_count)})
