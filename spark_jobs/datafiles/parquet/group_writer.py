"""Writes a parquet file from rows and from row groups of other files, in any order.

pyarrow encodes rows to row groups in memory, from where they are copied like stored ones. The
footer is that of a new file of the table.

Memory: one stored row group, or one in Arrow form and encoded.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import group_copies
from spark_jobs.datafiles.parquet.chunk_statistics import ChunkStatistics
from spark_jobs.datafiles.parquet.column_codec import EncodedChunk, Window, footer_fields
from spark_jobs.datafiles.parquet.float_bounds import leaves_with_nan, without_bounds
from spark_jobs.datafiles.parquet.footer import (
    FileField,
    Footer,
    GroupField,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.new_columns import leaf_paths
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, i64, list_of
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.statistics import StatisticsCollector
from spark_jobs.storage.files import make_folder


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group of a file, of which some columns are stored as in new files of the table.

    ``columns`` has the file's column for each column of the table; None: it cannot be copied.
    """

    footer: Footer
    fields: Struct
    window: Window
    columns: tuple[TopColumn | None, ...]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return number(self.fields, GroupField.NUM_ROWS)

    def chunks(self, column: TopColumn) -> list[EncodedChunk]:
        """The chunks of a column as they are stored."""
        stored = footers.chunks_of(self.fields)
        metas = [footers.meta_of(stored[leaf]) for leaf in column.leaves]
        return [group_copies.copied(self.window, meta) for meta in metas]


class GroupWriter:
    """Writes one file; there is none if it would have no rows.

    Rows are collected until they have ``row_group_bytes`` in Arrow form. ``form`` is the footer of
    a file without rows.
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        path: str,
        schema: pa.Schema,
        compression: Compression,
        row_group_bytes: int,
    ) -> None:
        self._filesystem = filesystem
        self._path = path
        self._compression = compression
        self._row_group_bytes = row_group_bytes
        self.form = _empty_footer(schema, compression)
        self._paths = [p for each in self.form.columns for p in leaf_paths(each.elements)]
        self._statistics = StatisticsCollector()
        self._stream: pa.NativeFile | None = None
        self._groups: list[Struct] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._rows = 0

    def add_rows(self, rows: pa.Table) -> None:
        """Append rows with the schema of the files."""
        limit = self._row_group_bytes
        step = max(1, rows.num_rows * limit // max(rows.nbytes, 1))
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            self._pending.append(part)
            self._pending_bytes += part.nbytes
            if self._pending_bytes >= limit:
                self._encode_pending()

    def copy_group(self, group: StoredGroup, others: pa.Table) -> None:
        """Append a row group as it is stored, with ``others``, the columns that are not copied.

        Raises:
            pa.ArrowException, OSError: values that are needed for statistics cannot be decoded.
        """
        self._encode_pending()
        encoded = self._encoded_columns(others)
        chunks: list[EncodedChunk] = []
        try:
            statistics = ChunkStatistics(group.footer, self.form.columns, self._statistics)
            is_ordered = group.footer.has_column_orders
            for column, source in zip(self.form.columns, group.columns, strict=True):
                if source is None:
                    chunks += encoded[column.name]
                    self._statistics.add_column(column.name, others.column(column.name))
                    continue
                copied = statistics.add(column, group.chunks(source), group.row_count, None)
                chunks += copied if is_ordered else map(_without_bounds, copied)
            statistics.result()
        except pa.ArrowException:
            raise
        except footers.MISUNDERSTOOD as error:
            raise pa.ArrowInvalid(f"the statistics of a row group: {error!r}") from error
        self._write_group(group.fields, chunks)

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

    def _encode_pending(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        self._statistics.add(rows)
        for fields, chunks in _encoded_groups(rows, self._compression):
            self._write_group(fields, chunks)

    def _encoded_columns(self, rows: pa.Table) -> Mapping[str, Sequence[EncodedChunk]]:
        """The chunks of each column, in one row group."""
        if not rows.num_columns:
            return {}
        ((_, chunks),) = _encoded_groups(rows, self._compression)
        left = iter(chunks)
        columns = [each for each in self.form.columns if each.name in rows.column_names]
        return {each.name: list(islice(left, len(each.leaves))) for each in columns}

    def _write_group(self, fields: Struct, chunks: Iterable[EncodedChunk]) -> None:
        stream = self._opened()
        start = int(stream.tell())
        written = [
            group_copies.write_chunk(stream, {}, path, chunk)
            for path, chunk in zip(self._paths, chunks, strict=True)
        ]
        rows, ordinal = number(fields, GroupField.NUM_ROWS), len(self._groups)
        group = group_copies.new_group(fields, written, rows, start, ordinal, unsorted=True)
        self._groups.append(group)
        self._rows += rows

    def _opened(self) -> pa.NativeFile:
        if self._stream is None:
            make_folder(self._filesystem, posixpath.dirname(self._path))
            self._stream = self._filesystem.open_output_stream(self._path)
            self._stream.write(footers.MAGIC)
        return self._stream


def _empty_footer(schema: pa.Schema, compression: Compression) -> Footer:
    """The footer of a new file without rows."""
    data = _encoded(schema.empty_table(), compression)
    return footers.read_footer(pa.BufferReader(data))


def _encoded(rows: pa.Table, compression: Compression) -> pa.Buffer:
    """A file of ``rows`` in memory."""
    sink = pa.BufferOutputStream()
    arguments = ParquetOptions.for_rows(rows).writer_arguments(compression)
    # In place of bounds in pages, which leave NaN out; only pages are taken from the file.
    with pq.ParquetWriter(sink, rows.schema, write_page_index=True, **arguments) as writer:
        if rows.num_rows:
            writer.write_table(rows, row_group_size=rows.num_rows)
    return sink.getvalue()


def _encoded_groups(
    rows: pa.Table, compression: Compression
) -> Iterator[tuple[Struct, list[EncodedChunk]]]:
    """The row groups of ``rows``, of which there are several only if there are very many rows."""
    data = _encoded(rows, compression)
    window = Window(0, data)
    nans = [nan for each in rows.columns for nan in leaves_with_nan(each.type, each.chunks)]
    for group in footers.items(footer_fields(data)[FileField.ROW_GROUPS]):
        metas = map(footers.meta_of, footers.chunks_of(group))
        chunks = [group_copies.copied(window, meta) for meta in metas]
        pairs = zip(chunks, nans, strict=True)
        yield group, [_without_bounds(chunk) if nan else chunk for chunk, nan in pairs]


def _without_bounds(chunk: EncodedChunk) -> EncodedChunk:
    """The chunk without a minimum and maximum, whose order would be taken for another one."""
    return EncodedChunk(without_bounds(chunk.meta), chunk.pages)
