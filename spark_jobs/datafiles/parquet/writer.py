"""Writes a parquet file and collects exact statistics of its content."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet.annotations import AnnotatingStream
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
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
        self._annotating: AnnotatingStream | None = None
        if AnnotatingStream.needed(schema):
            self._annotating = AnnotatingStream(self._stream, schema)

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

    def finish(self) -> WrittenFile:
        """Write the footer and close the file."""
        writer = self._opened(self._schema.empty_table())
        if self._annotating is None:
            writer.close()
        else:
            self._annotating.begin_end()
            writer.close()
            self._annotating.finish()
        size = self.bytes_written
        self._stream.close()
        return WrittenFile(self._path, size, self._rows, self._statistics.result())

    def close_quietly(self) -> None:
        """Abandon the file; what is in the storage must then be removed."""
        for each in (self._writer, self._stream):
            with contextlib.suppress(OSError, pa.ArrowException):
                if each is not None:
                    each.close()

    def _opened(self, first: pa.Table) -> pq.ParquetWriter:
        """The writer of pyarrow; ``first`` is the first row group, if none has been written."""
        if self._writer is None:
            options = self._options or ParquetOptions.for_rows(first)
            arguments = options.writer_arguments(self._compression)
            sink = self._annotating or self._stream
            self._writer = pq.ParquetWriter(sink, self._schema, **arguments)
        return self._writer
