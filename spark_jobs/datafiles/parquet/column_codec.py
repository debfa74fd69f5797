"""Converts column chunks to Arrow arrays and back with pyarrow, one table column at a time.

To decode a chunk, pyarrow gets a footer that describes only that chunk. To encode one, it writes a
file of one column, from which the pages are taken. A column whose values need no interpretation is
decoded without its logical type: decimals stay bytes, timestamps stay integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import int96, thrift
from spark_jobs.datafiles.parquet.footer import (
    ElementField,
    FileField,
    MetaField,
    NotSpliceableError,
    StatisticsField,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.thrift import Struct, Value
from spark_jobs.datafiles.parquet.whole_group import read_group

# The fields of a leaf that define its logical type.
_LOGICAL = (
    ElementField.CONVERTED_TYPE,
    ElementField.SCALE,
    ElementField.PRECISION,
    ElementField.LOGICAL_TYPE,
)
_SIGN = 0x80
_LONG = 8


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """The pages of a chunk, and its ColumnMetaData as if the pages began at byte 4 of a file."""

    meta: Struct
    pages: Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Window:
    """The bytes of a file from ``start`` on, which is at least 4 bytes before the first page."""

    start: int
    data: pa.Buffer

    def pages(self, meta: Struct) -> memoryview:
        """All pages of a chunk that lies in the window."""
        start, end = footers.chunk_range(meta)
        return memoryview(self.data)[start - self.start : end - self.start]


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """Decodes and encodes the values of one column.

    ``physical``: arrays have the physical type of the column, not its logical type.
    """

    column: TopColumn
    created_by: Value | None
    compression: Compression
    physical: bool

    @classmethod
    def for_column(
        cls, column: TopColumn, created_by: Value | None, compression: Compression
    ) -> ColumnCodec:
        """The codec of a column that interprets values as little as possible."""
        physical = (
            _is_ordered_as_stored(column) or _is_decimal_of_bytes(column) or int96.is_int96(column)
        )
        return cls(column, created_by, compression, physical)

    def require_writable(self) -> None:
        """Check that what this codec encodes fits the schema of the file.

        Raises:
            NotSpliceableError: pyarrow would store the column in another form.
        """
        if int96.is_int96(self.column):
            return
        try:
            data = self._write(pa.array([], self.column.field.type), self.column.field)
        except (pa.ArrowException, NotImplementedError) as error:
            raise NotSpliceableError(f"column {self.column.name}: {error}") from None
        written = footers.items(footer_fields(data)[FileField.SCHEMA])[1:]
        if _shape(written) != _shape(self.column.elements):
            raise NotSpliceableError(f"column {self.column.name} is stored in another form")

    def decode(self, window: Window, metas: Sequence[Struct], rows: int) -> pa.ChunkedArray:
        """The values of the column in one row group, whose chunks lie in ``window``."""
        elements = self.column.elements
        if int96.is_int96(self.column):
            elements = (int96.as_bytes(elements[0]),)
        elif self.physical:
            elements = ({k: v for k, v in elements[0].items() if k not in _LOGICAL},)
        moved = [footers.moved(meta, -window.start) for meta in metas]
        footer = footers.single_column_footer(elements, moved, rows, self.created_by)
        values = read_pages(window.data, footer)
        if int96.is_int96(self.column) and not self.physical:
            chunks = [int96.timestamps(chunk) for chunk in values.chunks]
            return pa.chunked_array(chunks, self.column.field.type)
        return values

    def encode(self, values: pa.ChunkedArray, dictionary: bool) -> list[EncodedChunk]:
        """The chunks that hold ``values``, one per leaf; ``values`` are as ``decode`` returns them.

        ``dictionary``: whether to try dictionary encoding.
        """
        field = self.column.field
        if self.physical:
            field = pa.field(field.name, values.type, nullable=field.nullable)
        own_statistics = self.physical and _is_decimal_of_bytes(self.column)
        is_int96 = int96.is_int96(self.column)
        data = self._write(values, field, dictionary, not (own_statistics or is_int96))
        chunks = list(_chunks(data))
        if own_statistics:
            chunks[0].meta[MetaField.STATISTICS] = thrift.struct(_signed_statistics(values))
        elif is_int96:
            chunks[0].meta[MetaField.TYPE] = self.column.elements[0][ElementField.TYPE]
        elif not is_ordered(self.column.elements[-1]):
            chunks[0].meta.pop(MetaField.STATISTICS, None)
        return chunks

    def stored(self, values: pa.Array) -> pa.Array:
        """``values`` of the column's own type, converted to the type that ``decode`` returns."""
        if not self.physical:
            return values
        if int96.is_int96(self.column):
            return int96.stored_timestamps(values)
        data = self._write(values, self.column.field)
        metas = [chunk.meta for chunk in _chunks(data)]
        column = self.decode(Window(0, data), metas, len(values))
        return pa.concat_arrays(column.chunks)

    def _write(
        self,
        values: pa.Array | pa.ChunkedArray,
        field: pa.Field,
        dictionary: bool = False,
        statistics: bool = True,
    ) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.Table.from_arrays([values], schema=pa.schema([field])),
            sink,
            row_group_size=max(len(values), 1),
            compression=self.compression.codec,
            compression_level=self.compression.level,
            use_dictionary=dictionary,
            write_statistics=statistics,
            # In place of bounds in pages, which leave NaN out; only pages are taken from the file.
            write_page_index=True,
            store_decimal_as_integer=_has_integer_decimals(self.column),
            store_schema=False,
        )
        return sink.getvalue()


def read_pages(data: pa.Buffer, footer: Struct, **options: object) -> pa.ChunkedArray:
    """The only column of a file whose bytes are ``data``, as ``footer`` describes it."""
    metadata = footers.as_pyarrow(footer)
    with pq.ParquetFile(pa.BufferReader(data), metadata=metadata, **options) as file:
        return read_group(file, 0).column(0)


def _chunks(data: pa.Buffer) -> Iterator[EncodedChunk]:
    """The chunks of a file with a single row group."""
    (group,) = footers.items(footer_fields(data)[FileField.ROW_GROUPS])
    window = Window(0, data)
    for chunk in footers.chunks_of(group):
        meta = footers.meta_of(chunk)
        start, _ = footers.chunk_range(meta)
        yield EncodedChunk(footers.moved(meta, len(footers.MAGIC) - start), [window.pages(meta)])


def footer_fields(data: pa.Buffer) -> Struct:
    """The footer of a file that was written in memory."""
    view = memoryview(data)
    length = int.from_bytes(view[-8:-4], "little")
    fields, _ = thrift.parse(bytes(view[-8 - length : -8]))
    return fields


def _is_ordered_as_stored(column: TopColumn) -> bool:
    """Whether physical values have the same order, and so the same minimum, as logical ones."""
    if not column.is_flat:
        return False
    stored_as, kind = number(column.elements[0], ElementField.TYPE), column.field.type
    if stored_as in (footers.INT32, footers.INT64):
        return not (pa.types.is_unsigned_integer(kind) or pa.types.is_null(kind))
    if stored_as == footers.BYTE_ARRAY:
        return kind in (pa.string(), pa.binary())
    return stored_as in (footers.BOOLEAN, footers.FLOAT, footers.DOUBLE)


def _is_decimal_of_bytes(column: TopColumn) -> bool:
    stored_as = number(column.elements[0], ElementField.TYPE, -1)
    decimal = pa.types.is_decimal(column.field.type)
    return column.is_flat and decimal and stored_as == footers.FIXED_LEN_BYTE_ARRAY


def _has_integer_decimals(column: TopColumn) -> bool:
    integers = (footers.INT32, footers.INT64)
    return any(
        ElementField.PRECISION in each and number(each, ElementField.TYPE, -1) in integers
        for each in column.elements
    )


def is_ordered(element: Struct) -> bool:
    """Whether the leaf's values are ordered; intervals of months, days and milliseconds are not."""
    interval = 21
    return number(element, ElementField.CONVERTED_TYPE, -1) != interval


def _shape(elements: Sequence[Struct]) -> list[tuple[int, ...]]:
    """The type of each leaf, and the repetitions that its levels count: its path, less required."""
    leaves: list[tuple[int, ...]] = []

    def walk(position: int, way: tuple[int, ...]) -> int:
        element = elements[position]
        if footers.repetition(element) != footers.REQUIRED:
            way = (*way, footers.repetition(element))
        if ElementField.TYPE in element:
            length = number(element, ElementField.TYPE_LENGTH)
            leaves.append((number(element, ElementField.TYPE), length, *way))
        position += 1
        for _ in range(number(element, ElementField.NUM_CHILDREN)):
            position = walk(position, way)
        return position

    walk(0, ())
    return leaves


def _signed_statistics(values: pa.ChunkedArray) -> Struct:
    """Statistics of big-endian numbers in two's complement."""
    statistics: Struct = {StatisticsField.NULL_COUNT: thrift.i64(values.null_count)}
    present = values.drop_null()
    if len(present) == 0:
        return statistics
    width = values.type.byte_width
    raw = np.concatenate([_bytes_of(chunk, width) for chunk in present.chunks])
    low, high = _extremes_of_long(raw) if width > _LONG else _extremes_of_short(raw)
    statistics[StatisticsField.MAX_VALUE] = thrift.binary(high)
    statistics[StatisticsField.MIN_VALUE] = thrift.binary(low)
    return statistics


def _extremes_of_short(raw: np.ndarray) -> tuple[bytes, bytes]:
    """The least and the greatest of numbers that fit 64 bits.

    Each is read as a word of 64 bits, which starts with it; the bytes behind it decide nothing but
    which of two equal numbers comes first.
    """
    count, width = raw.shape
    stored = np.concatenate([raw.reshape(-1), np.zeros(_LONG, np.uint8)])
    words = np.ndarray(count, ">i8", stored, strides=(width,)).astype(np.int64)
    return raw[words.argmin()].tobytes(), raw[words.argmax()].tobytes()


def _extremes_of_long(raw: np.ndarray) -> tuple[bytes, bytes]:
    raw[:, 0] ^= _SIGN  # Now they sort as unsigned bytes.
    shifted = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(raw.shape[1]), len(raw), [None, pa.py_buffer(raw)]
    )
    extremes = pc.min_max(shifted)
    (low, *low_rest), (high, *high_rest) = extremes["min"].as_py(), extremes["max"].as_py()
    return bytes([low ^ _SIGN, *low_rest]), bytes([high ^ _SIGN, *high_rest])


def _bytes_of(array: pa.FixedSizeBinaryArray, width: int) -> np.ndarray:
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    start = array.offset * width
    return raw[start : start + len(array) * width].reshape(-1, width).copy()
