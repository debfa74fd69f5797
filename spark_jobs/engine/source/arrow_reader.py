"""The executor side of reading files with pyarrow: without the JVM, or where it cannot read them.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import orc

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.files import FileVersion, changed

# Spark also keeps the microseconds of INT96 values.
_UNIT = "us"


class FileSplit(NamedTuple):
    """A part of a file: its row groups that begin at byte ``start`` or later, but before ``end``.

    If ``version`` is given, any other version of the file is an error.
    """

    path: str
    start: int
    end: int
    version: FileVersion | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ArrowFileReader:
    """Implements ``PartReader``: batches of the columns of ``schema``.

    A column that a file does not have is NULL. Picklable.
    """

    filesystem: pafs.FileSystem
    is_orc: bool
    schema: pa.Schema

    def read(self, parts: Sequence[FileSplit]) -> Iterator[pa.RecordBatch]:
        """The rows of splits.

        Raises:
            CatalogError: SOURCE_UNREADABLE.
        """
        for split in parts:
            try:
                for rows in self._read(split):
                    yield self._conformed(rows)
                self._require_version(split)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(split.path, error) from None

    def _require_version(self, split: FileSplit) -> None:
        read = split.version
        if read and FileVersion.of(self.filesystem.get_file_info(split.path)) != read:
            raise changed(split.path)

    def _read(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        with self.filesystem.open_input_file(split.path) as stream:
            if self.is_orc:
                file = orc.ORCFile(stream)
                names = [self._found(name, file.schema.names) for name in self.schema.names]
                for stripe in range(file.nstripes):
                    yield file.read_stripe(stripe, columns=[name for name in names if name])
                return
            with pq.ParquetFile(stream, coerce_int96_timestamp_unit=_UNIT, pre_buffer=True) as file:
                names = [self._found(name, file.schema_arrow.names) for name in self.schema.names]
                wanted = [name for name in names if name]
                # One at a time: the buffers of a row group are kept until the next call.
                for group in _row_groups(file.metadata, split):
                    yield from file.iter_batches(row_groups=[group], columns=wanted)

    def _conformed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self.schema.names:
            return rows
        columns = []
        for field in self.schema:
            name = self._found(field.name, rows.schema.names)
            if name is None:
                columns.append(pa.nulls(rows.num_rows, field.type))
            else:
                columns.append(stored_as(rows.column(name), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @staticmethod
    def _found(wanted: str, names: list[str]) -> str | None:
        """The file's name for a column: the same, or the only one that differs just in case."""
        if wanted in names:
            return wanted
        same = [name for name in names if name.lower() == wanted.lower()]
        return same[0] if len(same) == 1 else None


def stored_as(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """``values`` as ``wanted``, without loss; timestamps without a zone become UTC if need be.

    Raises:
        pa.ArrowInvalid: a value does not fit, or a field is missing.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == wanted:
        return values
    _require_fields(values.type, wanted)
    return values.cast(wanted)


def _require_fields(found: pa.DataType, wanted: pa.DataType) -> None:
    """Check that structs have the wanted fields: pyarrow fills those that they lack with NULLs."""
    if not (pa.types.is_nested(found) and pa.types.is_nested(wanted)):
        return
    if pa.types.is_struct(wanted):
        for field in wanted:
            index = found.get_field_index(field.name)
            if index < 0:
                raise pa.ArrowInvalid(f"it has no field {field.name}, written exactly so")
            _require_fields(found.field(index).type, field.type)
        return
    for index in range(wanted.num_fields):
        _require_fields(found.field(index).type, wanted.field(index).type)


def row_group_starts(metadata: pq.FileMetaData) -> list[int]:
    """The byte at which each row group of a Parquet file begins."""
    starts = []
    for number in range(metadata.num_row_groups):
        first = metadata.row_group(number).column(0)
        pages = (first.dictionary_page_offset, first.data_page_offset)
        starts.append(min(page for page in pages if page is not None))
    return starts


def _row_groups(metadata: pq.FileMetaData, split: FileSplit) -> Iterator[int]:
    for number, start in enumerate(row_group_starts(metadata)):
        if split.start <= start < split.end:
            yield number


def _unreadable(path: str, error: Exception) -> CatalogError:
    return CatalogError(
        ErrorCode.SOURCE_UNREADABLE,
        f"{path} cannot be read: {str(error).strip().splitlines()[0]}",
        "Check that all files of the source have the same format and columns.",
    )
