"""Writes new rows into new data files, one open file at a time. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter

_ROW_GROUP_BYTES: Final = 64 * 1024 * 1024

K = TypeVar("K")
W = TypeVar("W")
F_co = TypeVar("F_co", covariant=True)


@dataclass(frozen=True, slots=True)
class NewFiles:
    """How new data files look; ``target_file_size`` is in bytes."""

    filesystem: pafs.FileSystem
    schema: pa.Schema
    target_file_size: int
    compression: Compression

    @property
    def row_group_bytes(self) -> int:
        """The size in Arrow bytes at which a row group is written."""
        return min(_ROW_GROUP_BYTES, self.target_file_size)

    def open(self, path: str) -> ParquetFileWriter:
        """The writer of a new file."""
        return ParquetFileWriter(self.filesystem, path, self.schema, self.compression)


class FileWriter(Protocol[F_co]):
    """Writes one file, like ``ParquetFileWriter``."""

    @property
    def bytes_written(self) -> int:
        """The size of the file so far, in bytes."""

    def write_row_group(self, table: pa.Table) -> None:
        """Append ``table`` as a row group."""

    def finish(self) -> F_co:
        """Close the file; returns what was written."""

    def close_quietly(self) -> None:
        """Abandon the file."""


@dataclass(slots=True)
class _Pending:
    """Rows of the current place that are not yet in a row group."""

    tables: list[pa.Table] = field(default_factory=list)
    size: int = 0

    def add(self, table: pa.Table) -> None:
        self.tables.append(table)
        self.size += table.nbytes

    def take(self) -> pa.Table:
        table = pa.concat_tables(self.tables)
        self.tables, self.size = [], 0
        return table


class RollingWriter(Generic[K, W]):
    """Writes rows that arrive place by place; a file is rolled at the target size.

    A place is what the rows of a file have in common, such as their partition. ``open_file`` opens
    a new file for a place.
    """

    def __init__(self, files: NewFiles, open_file: Callable[[K], FileWriter[W]]) -> None:
        self._files = files
        self._open_file = open_file
        self._place: K | None = None
        self._pending = _Pending()
        self._writer: FileWriter[W] | None = None
        self._written: list[tuple[K, W]] = []

    def write(self, place: K, rows: pa.Table) -> None:
        """Add rows of one place, with the schema of the files."""
        if self._place != place:
            self._close_file()
            self._place = place
        self._pending.add(rows)
        if self._pending.size >= self._files.row_group_bytes:
            self._write_row_group(place)

    def end_file(self) -> None:
        """Close the open file: further rows go to another one."""
        self._close_file()
        self._place = None

    def finish(self) -> list[tuple[K, W]]:
        """Close the open file; returns all written files with their places."""
        self._close_file()
        return self._written

    def close_quietly(self) -> None:
        """Abandon the open file."""
        if self._writer is not None:
            self._writer.close_quietly()

    def _write_row_group(self, place: K) -> None:
        if self._writer is None:
            self._writer = self._open_file(place)
        self._writer.write_row_group(self._pending.take())
        if self._writer.bytes_written >= self._files.target_file_size:
            self._finish_file(place)

    def _close_file(self) -> None:
        if self._place is None:
            return
        if self._pending.tables:
            self._write_row_group(self._place)
        self._finish_file(self._place)

    def _finish_file(self, place: K) -> None:
        if self._writer is not None:
            self._written.append((place, self._writer.finish()))
            self._writer = None
