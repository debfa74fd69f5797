"""Writes a parquet file and collects exact statistics of its content."""

from __future__ import annotations

import contextlib
import io
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.annotations import annotated, is_annotated
from spark_jobs.datafiles.parquet.float_bounds import has_floats, leaves_with_nan, without_bounds
from spark_jobs.datafiles.parquet.footer import ChunkField, FileField, GroupField, number
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, list_of, struct
from spark_jobs.datafiles.statistics import ColumnStatistics, StatisticsCollector
from spark_jobs.storage.files import make_folder


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished data file; ``size`` is in bytes."""

    path: str
    size: int
    rows: int
    statistics: Mapping[str, ColumnStatistics]


class ParquetFileWriter:
    """Writes tables of one schema to a new file, each as a row group.

    ``options`` None: those that suit the first row group.
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        path: str,
        schema: pa.Schema,
        compression: Compression,
        options: ParquetOptions | None = None,
    ) -> None:
        self._path = path
        self._rows = 0
        self._statistics = StatisticsCollector()
        make_folder(filesystem, posixpath.dirname(path))
        self._stream = filesystem.open_output_stream(path)
        self._schema = schema
        self._compression = compression
        self._options = options
        self._writer: pq.ParquetWriter | None = None
        # By table: the number of rows up to its end, and whether there is a NaN in each leaf.
        self._nans: list[tuple[int, list[bool]]] = []
        is_edited = is_annotated(schema) or any(has_floats(each.type) for each in schema)
        self._edited = EditedStream(self._stream) if is_edited else None

    @property
    def bytes_written(self) -> int:
        """The size of the file so far, in bytes; before ``finish`` without the footer."""
        return int(self._stream.tell())

    def write_row_group(self, table: pa.Table) -> None:
        """Append ``table`` as a row group; an empty table adds none."""
        if table.num_rows == 0:
            return
        writer = self._opened(table)
        writer.write_table(table.unify_dictionaries(), row_group_size=table.num_rows)
        self._statistics.add(table)
        self._rows += table.num_rows
        if self._edited is not None:
            leaves = (leaves_with_nan(each.type, each.chunks) for each in table.columns)
            self._nans.append((self._rows, list(chain.from_iterable(leaves))))

    def finish(self) -> WrittenFile:
        """Write the footer and close the file."""
        writer = self._opened(self._schema.empty_table())
        if self._edited is None:
            writer.close()
        else:
            self._edited.begin_end()
            writer.close()
            self._edited.finish(self._edited_footer)
        size = self.bytes_written
        self._stream.close()
        return WrittenFile(self._path, size, self._rows, self._statistics.result())

    def close_quietly(self) -> None:
        """Abandon the file; what is in the storage must then be removed."""
        for closable in (self._writer, self._stream):
            with contextlib.suppress(OSError, pa.ArrowException):
                if closable is not None:
                    closable.close()

    def _opened(self, first: pa.Table) -> pq.ParquetWriter:
        """The writer of pyarrow; ``first`` is the first row group, if none has been written."""
        if self._writer is None:
            options = self._options or ParquetOptions.for_rows(first)
            arguments = options.writer_arguments(self._compression)
            if self._edited is None:
                self._writer = pq.ParquetWriter(self._stream, self._schema, **arguments)
            else:
                # With page indexes, which are left out, the headers of pages have no bounds.
                self._writer = pq.ParquetWriter(
                    self._edited, self._schema, write_page_index=True, **arguments
                )
        return self._writer

    def _edited_footer(self, fields: Struct) -> Struct:
        """The footer with annotations, and without the bounds of chunks that have a NaN."""
        elements = annotated(footers.items(fields[FileField.SCHEMA]), list(self._schema))
        groups: list[Struct] = []
        rows, end, nans = 0, 0, iter(self._nans)
        leaves: list[bool] = []
        for group in footers.items(fields[FileField.ROW_GROUPS]):
            # A table of very many rows has several row groups.
            if rows == end:
                end, leaves = next(nans)
            rows += number(group, GroupField.NUM_ROWS)
            pairs = zip(footers.chunks_of(group), leaves, strict=True)
            chunks = [_edited_chunk(chunk, has_nan) for chunk, has_nan in pairs]
            groups.append({**group, GroupField.COLUMNS: list_of(STRUCT, chunks)})
        edited = {FileField.SCHEMA: elements, FileField.ROW_GROUPS: groups}
        return {**fields, **{name: list_of(STRUCT, each) for name, each in edited.items()}}


def _edited_chunk(chunk: Struct, has_nan: bool) -> Struct:
    """A ColumnChunk without page indexes, and with bounds only if there is no NaN in it."""
    meta = footers.meta_of(chunk)
    kept = {k: v for k, v in chunk.items() if k not in ChunkField.PAGE_INDEXES}
    return {**kept, ChunkField.META_DATA: struct(without_bounds(meta) if has_nan else meta)}


class EditedStream(io.RawIOBase):
    """Passes a file on to ``stream``, but for its end: the page indexes and the footer."""

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__()
        self._stream = stream
        self._end: bytearray | None = None

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The size of the file so far, in bytes."""
        return int(self._stream.tell()) + len(self._end or b"")

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Take the next bytes of the file."""
        if self._end is None:
            self._stream.write(data)
        else:
            self._end += data
        return len(data)

    def begin_end(self) -> None:
        """Hold back what follows, which has no pages any more."""
        self._end = bytearray()

    def finish(self, edit: Callable[[Struct], Struct]) -> None:
        """Write the footer that ``edit`` makes of the one held back, without page indexes."""
        end = bytes(self._end or b"")
        start = len(end) - footers.TRAILER - int.from_bytes(end[-footers.TRAILER : -4], "little")
        fields, _ = thrift.parse(end[start : -footers.TRAILER])
        self._end = None
        self._stream.write(footers.framed(edit(fields)))
