"""Writes a parquet file from rows and from row groups of other files, in any order.

pyarrow encodes rows to row groups in memory, from where they are copied like stored ones. The
footer is that of a new file of the table.

Memory: one stored row group, or one in Arrow form and encoded.
"""

from __future__ import annotations

import contextlib
import posixpath
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import group_copies, thrift
from spark_jobs.datafiles.parquet.chunk_statistics import ChunkStatistics
from spark_jobs.datafiles.parquet.column_codec import EncodedChunk, Window, footer_fields
from spark_jobs.datafiles.parquet.footer import (
    FileField,
    Footer,
    GroupField,
    MetaField,
    StatisticsField,
    number,
)
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, i64, list_of
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.statistics import StatisticsCollector
from spark_jobs.storage.files import make_folder

# What is left of a chunk's statistics if its footer does not say how minimum and maximum are meant.
_ORDERLESS: Final = (StatisticsField.NULL_COUNT,)


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group of a file whose columns are stored as a new file of the table stores them."""

    footer: Footer
    fields: Struct
    window: Window

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return number(self.fields, GroupField.NUM_ROWS)


class GroupWriter:
    """Writes one file; there is none if it would have no rows.

    Rows are collected until they are as large as a row group.
    """

    def __init__(self, files: NewFiles, path: str) -> None:
        self._files = files
        self._path = path
        self.form = empty_footer(files.schema, files.compression)
        self._statistics = StatisticsCollector()
        self._stream: pa.NativeFile | None = None
        self._groups: list[Struct] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._rows = 0

    def add_rows(self, rows: pa.Table) -> None:
        """Append rows with the schema of the files."""
        limit = self._files.row_group_bytes
        step = max(1, rows.num_rows * limit // max(rows.nbytes, 1))
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            self._pending.append(part)
            self._pending_bytes += part.nbytes
            if self._pending_bytes >= limit:
                self._encode_pending()

    def copy_group(self, group: StoredGroup) -> None:
        """Append a row group as it is stored; its columns must be stored as in ``form``.

        Raises:
            pa.ArrowException, OSError: values that are needed for statistics cannot be decoded.
        """
        self._encode_pending()
        chunks = footers.chunks_of(group.fields)
        encoded = [group_copies.copied(group.window, footers.meta_of(each)) for each in chunks]
        try:
            self._add_statistics(group, encoded)
        except pa.ArrowException:
            raise
        except footers.MISUNDERSTOOD as error:
            raise pa.ArrowInvalid(f"the statistics of a row group: {error!r}") from error
        if not group.footer.has_column_orders:
            encoded = list(map(_without_bounds, encoded))
        self._write_group(group.fields, encoded)

    def finish(self) -> WrittenFile | None:
        """Write the footer and close the file; None if it has no rows."""
        self._encode_pending()
        if self._stream is None:
            return None
        counted = {
            FileField.NUM_ROWS: i64(self._rows),
            FileField.ROW_GROUPS: list_of(STRUCT, self._groups),
        }
        self._stream.write(footers.framed({**self.form.fields, **counted}))
        size = int(self._stream.tell())
        self._stream.close()
        return WrittenFile(self._path, size, self._rows, self._statistics.result())

    def close_quietly(self) -> None:
        """Abandon the file; what is in the storage must then be removed."""
        if self._stream is not None:
            with contextlib.suppress(OSError, pa.ArrowException):
                self._stream.close()

    def _add_statistics(self, group: StoredGroup, chunks: list[EncodedChunk]) -> None:
        statistics = ChunkStatistics(group.footer, self.form.columns, self._statistics)
        for column in self.form.columns:
            of_column = chunks[column.leaves.start : column.leaves.stop]
            statistics.add(column, of_column, group.row_count, None)
        statistics.result()

    def _encode_pending(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        self._statistics.add(rows)
        data = _encoded(rows, self._files.compression)
        window = Window(0, data)
        for group in footers.items(footer_fields(data)[FileField.ROW_GROUPS]):
            metas = map(footers.meta_of, footers.chunks_of(group))
            self._write_group(group, [group_copies.copied(window, meta) for meta in metas])

    def _write_group(self, old: Struct, chunks: list[EncodedChunk]) -> None:
        stream = self._opened()
        start = int(stream.tell())
        written = [
            group_copies.write_chunk(stream, before, None, chunk)
            for before, chunk in zip(footers.chunks_of(old), chunks, strict=True)
        ]
        rows = number(old, GroupField.NUM_ROWS)
        ordinal = len(self._groups)
        self._groups.append(
            group_copies.new_group(old, written, rows, start, ordinal, unsorted=False)
        )
        self._rows += rows

    def _opened(self) -> pa.NativeFile:
        if self._stream is None:
            make_folder(self._files.filesystem, posixpath.dirname(self._path))
            self._stream = self._files.filesystem.open_output_stream(self._path)
            self._stream.write(footers.MAGIC)
        return self._stream


def empty_footer(schema: pa.Schema, compression: Compression) -> Footer:
    """The footer of a new file without rows."""
    data = _encoded(schema.empty_table(), compression)
    return footers.read_footer(pa.BufferReader(data))


def _encoded(rows: pa.Table, compression: Compression) -> pa.Buffer:
    """A file of ``rows`` in memory."""
    sink = pa.BufferOutputStream()
    arguments = ParquetOptions.for_rows(rows).writer_arguments(compression)
    with pq.ParquetWriter(sink, rows.schema, **arguments) as writer:
        if rows.num_rows:
            writer.write_table(rows, row_group_size=rows.num_rows)
    return sink.getvalue()


def _without_bounds(chunk: EncodedChunk) -> EncodedChunk:
    """The chunk without a minimum and maximum, whose order would be taken for another one."""
    if MetaField.STATISTICS not in chunk.meta:
        return chunk
    statistics: Struct = chunk.meta[MetaField.STATISTICS].data
    left = {k: v for k, v in statistics.items() if k in _ORDERLESS}
    return EncodedChunk({**chunk.meta, MetaField.STATISTICS: thrift.struct(left)}, chunk.pages)
