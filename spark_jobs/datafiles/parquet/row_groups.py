"""The row groups of a parquet file, whose columns pyarrow decodes on demand.

Decimals and INT96 timestamps are read as the integers or bytes that are stored. Decoding all
decimals takes pyarrow four times as long, though few rows may be wanted. INT96 timestamps it does
not always read rightly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.datafiles.decoded_rows import BatchSize, DecodedRows, gathered, slices
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import int96
from spark_jobs.datafiles.parquet.footer import (
    ElementField,
    FileField,
    Footer,
    NotSpliceableError,
    TopColumn,
    number,
    read_footer,
)
from spark_jobs.datafiles.parquet.options import low_cardinality_columns
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, list_of
from spark_jobs.datafiles.parquet.whole_group import read_group
from spark_jobs.datafiles.recorded_columns import require_recorded
from spark_jobs.spi.tables import ColumnRange

# What pyarrow holds of a column while it decodes it step by step: a page and a dictionary.
_READER_BYTES: Final = 1024 * 1024
# How much of a column chunk is fetched at once then, if not all of it. One for each column is open.
_BUFFER_BYTES: Final = 512 * 1024
# Dictionaries may make many bytes of few.
_STEP_ROWS: Final = 16_384
_LEAST_WIDTH: Final = 8
_LOGICAL = (
    ElementField.CONVERTED_TYPE,
    ElementField.SCALE,
    ElementField.PRECISION,
    ElementField.LOGICAL_TYPE,
)
_STORED_AS = (footers.INT32, footers.INT64, footers.FIXED_LEN_BYTE_ARRAY)
_WIDTH = 16


def row_groups(
    path: str,
    stream: pa.NativeFile,
    recorded: Collection[pa.Field],
    most: BatchSize | None = None,
) -> Iterator[RowGroup]:
    """The row groups of the file, set up to decode as little as possible.

    Raises:
        pa.ArrowInvalid: the file does not hold the columns ``recorded`` of its schema.
        NotSupportedError: one of them has INT96 timestamps that cannot be read rightly.
    """
    file, stored_types = _opened(stream, recorded, in_parts=most is not None)
    int96.refuse(path, file.schema, [field.name for field in recorded])
    for ordinal in range(file.num_row_groups):
        yield RowGroup(file, ordinal, stored_types)


class RowGroup:
    """One row group. Implements ``row_groups.RowGroup``."""

    def __init__(
        self, file: pq.ParquetFile, number: int, stored_types: Mapping[str, pa.DataType]
    ) -> None:
        self._file = file
        self._number = number
        self._stored_types = stored_types
        self._metadata = file.metadata.row_group(number)
        self.row_count: int = self._metadata.num_rows

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """False if the statistics of a column without nested fields exclude all values."""
        (leaf, *_) = self._leaves(name)
        statistics = self._metadata.column(leaf).statistics
        kind = self._file.schema_arrow.field(name).type
        if statistics is None or not statistics.has_min_max or not _are_numbers(kind, probe.type):
            return True
        nulls = statistics.null_count if statistics.has_null_count else None
        known = ColumnRange(statistics.min_raw, statistics.max_raw, nulls).believed(self.row_count)
        return known.minimum is None or probe.may_be_within(known.minimum, known.maximum)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows, as decoded."""
        return self._read(list(self._leaves(name)))[0]

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """Some rows of a column, from those of ``column``."""
        kind = self._stored_types.get(name)
        return decoded if kind is None else logical(decoded, kind)

    def parts(self, names: Sequence[str], most: BatchSize) -> Iterator[DecodedRows]:
        """The rows in batches, decoded step by step unless they are few.

        Raises:
            pa.ArrowInvalid: its columns do not have as many rows as it has.
        """
        leaves = [leaf for name in names for leaf in self._leaves(name)]
        decoded = 0
        for table in self._batches(leaves, most):
            decoded += table.num_rows
            yield DecodedRows(table, self.values)
            del table
        if decoded != self.row_count:
            raise pa.ArrowInvalid(f"a row group has {decoded} rows, not {self.row_count}")

    def _batches(self, leaves: Sequence[int], most: BatchSize) -> Iterator[pa.Table]:
        size = sum(map(self._size_of, leaves))
        if size <= max(most.size, len(leaves) * _READER_BYTES):
            return slices(self._read(leaves), most)
        step = min(most.rows_of(size, self.row_count), _STEP_ROWS)
        steps = self._file.reader.iter_batches(
            step, row_groups=[self._number], column_indices=leaves, use_threads=False
        )
        return gathered(steps, most)

    def _read(self, leaves: Sequence[int]) -> pa.Table:
        return read_group(self._file, self._number, leaves)

    def _size_of(self, leaf: int) -> int:
        """About the bytes of a leaf in Arrow form."""
        chunk = self._metadata.column(leaf)
        return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * _LEAST_WIDTH)

    def _leaves(self, name: str) -> range:
        return _leaves(self._file.schema_arrow, name)


def _opened(
    stream: pa.NativeFile, recorded: Collection[pa.Field], *, in_parts: bool
) -> tuple[pq.ParquetFile, Mapping[str, pa.DataType]]:
    """The file, and the types of columns that it decodes as they are stored."""
    try:
        footer = read_footer(stream)
        columns = pa.schema(column.field for column in footer.columns)
        metadata, types = _as_stored(footer)
    except NotSpliceableError:
        plain = pq.ParquetFile(stream)
        columns, metadata, types = plain.schema_arrow, plain.metadata, {}
    require_recorded(columns, recorded)
    schema = metadata.schema.to_arrow_schema()
    if in_parts:
        leaves = [leaf for field in recorded for leaf in _leaves(schema, field.name)]
        size = _buffer_size(metadata, leaves)
        return pq.ParquetFile(stream, metadata=metadata, buffer_size=size), types
    texts = low_cardinality_columns(metadata, schema)
    return pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts), types


def _buffer_size(metadata: pq.FileMetaData, leaves: Sequence[int]) -> int:
    """The bytes of a column to fetch at once; 0: all of a row group, because they are few."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    sizes = (sum(group.column(leaf).total_compressed_size for leaf in leaves) for group in groups)
    return _BUFFER_BYTES if max(sizes, default=0) > len(leaves) * _BUFFER_BYTES else 0


def _leaves(schema: pa.Schema, name: str) -> range:
    start = 0
    for field in schema:
        count = _leaf_count(field.type)
        if field.name == name:
            return range(start, start + count)
        start += count
    raise pa.ArrowInvalid(f"it has no column {name}")


def _are_numbers(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column's bounds, as they are stored, are the numbers of wanted values."""
    if pa.types.is_date32(wanted):
        return bool(pa.types.is_date32(stored))
    return bool(pa.types.is_signed_integer(stored) and pa.types.is_signed_integer(wanted))


def _leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.DictionaryType) or not kind.num_fields:
        return 1
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields))


def _as_stored(footer: Footer) -> tuple[pq.FileMetaData, Mapping[str, pa.DataType]]:
    """The footer with decimals and INT96 as they are stored, and the types of those columns.

    It has no nested ones.
    """
    root, *_ = footers.items(footer.fields[FileField.SCHEMA])
    elements: list[Struct] = [root]
    types = {}
    for column in footer.columns:
        if _is_decimal(column):
            types[column.name] = column.field.type
            (element,) = column.elements
            elements.append({k: v for k, v in element.items() if k not in _LOGICAL})
        elif int96.is_int96(column):
            types[column.name] = column.field.type
            elements.append(int96.as_bytes(column.elements[0]))
        else:
            elements.extend(column.elements)
    # Without properties, in which Arrow writers store the Arrow schema.
    fields = {k: v for k, v in footer.fields.items() if k != FileField.PROPERTIES}
    return footers.as_pyarrow({**fields, FileField.SCHEMA: list_of(STRUCT, elements)}), types


def logical(stored: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of type ``kind`` that are stored as the footer of ``_as_stored`` says."""
    return decimals(stored, kind) if pa.types.is_decimal(kind) else int96.timestamps(stored)


def decimals(stored: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """The decimals of type ``kind`` that are stored as integers or as big-endian bytes."""
    if pa.types.is_integer(stored.type):
        digits = stored.cast(pa.decimal128(19, 0))
        buffers = [*digits.buffers()]
        return pa.Array.from_buffers(kind, len(digits), buffers, digits.null_count, digits.offset)
    width = stored.type.byte_width
    known = pc.fill_null(stored, bytes(width)) if stored.null_count else stored
    start = known.offset * width
    raw = np.frombuffer(known.buffers()[1], np.uint8)[start : start + len(known) * width]
    given = raw.reshape(len(known), width)
    # Little-endian two's complement: the sign fills the bytes above the given ones.
    wide = np.empty((len(known), _WIDTH), np.uint8)
    wide[:, :width] = given[:, ::-1]
    wide[:, width:] = np.where(given[:, :1] & 0x80, 0xFF, 0)
    valid = np.packbits(stored.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    return pa.Array.from_buffers(kind, len(known), [pa.py_buffer(valid), pa.py_buffer(wide)])


def _is_decimal(column: TopColumn) -> bool:
    stored_as = number(column.elements[0], ElementField.TYPE, -1)
    return column.is_flat and stored_as in _STORED_AS and pa.types.is_decimal128(column.field.type)
