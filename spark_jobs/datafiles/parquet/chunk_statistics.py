"""Statistics of a file's columns from those of its chunks; values are read only if necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Final

import pyarrow as pa

from spark_jobs.datafiles.parquet import encodings, float_bounds
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet.column_codec import ColumnCodec, EncodedChunk, Window, is_ordered
from spark_jobs.datafiles.parquet.footer import (
    MAGIC,
    ElementField,
    Footer,
    MetaField,
    StatisticsField,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.thrift import FALSE, Struct
from spark_jobs.datafiles.statistics import ColumnStatistics, StatisticsCollector

# The bytes of numbers that Arrow holds as parquet stores them.
_NUMBERS: Final = {footers.INT32: 4, footers.INT64: 8}
_EXACT: Final = Context(prec=38)
_EXACTNESS: Final = (StatisticsField.MAX_IS_EXACT, StatisticsField.MIN_IS_EXACT)


class ChunkStatistics:
    """Collects the exact statistics of a file from the chunks that are written to it.

    ``columns`` are those of the new file; chunks that are copied come from ``source``. What is
    found is added to ``collector``, so that one file can have chunks of several sources.

    Bounds that a chunk lacks or only approximates are computed from its values, and so are those of
    floating-point columns, whose chunks do not say whether they hold NaN; those that do lose their
    bounds, and so do copied ones that not every writer states rightly.
    """

    def __init__(
        self,
        source: Footer,
        columns: Sequence[TopColumn],
        collector: StatisticsCollector | None = None,
    ) -> None:
        self._source = source
        self._has_orders = source.has_column_orders
        self._columns = columns
        self._collector = StatisticsCollector() if collector is None else collector
        self._bounds: dict[str, list[bytes]] = {}

    def add(
        self,
        column: TopColumn,
        chunks: Sequence[EncodedChunk],
        rows: int,
        values: pa.ChunkedArray | None,
    ) -> list[EncodedChunk]:
        """Add a column's chunks of one row group, which has ``rows`` rows; returns sound ones.

        ``values`` are those that were encoded, in any type; None if no values were decoded.
        """
        has_floats = float_bounds.has_floats(column.field.type)
        if values is None and not self._source.has_fixed_orders:
            chunks = _without_fixed_bounds(column, chunks)
        if not has_floats and column.is_flat:
            meta = chunks[0].meta
            trusted = values is not None or self._has_orders
            bounds = exact_bounds(column.elements[0], meta) if trusted else None
            if bounds is not None:
                nulls = number(meta[MetaField.STATISTICS].data, StatisticsField.NULL_COUNT)
                self._collector.add_nulls(column.name, nulls)
                self._bounds.setdefault(column.name, []).extend(bounds)
                return list(chunks)
        # Physical values are those of the column's type if they are floating or nested.
        if values is None or (column.is_flat and not has_floats):
            values = self._decoded(column, chunks, rows)
        if not column.is_flat:
            self._collector.add_nulls(column.name, values.null_count)
        else:
            self._collector.add_column(column.name, values)
        metas = float_bounds.sound_bounds(column, [chunk.meta for chunk in chunks], values)
        return [EncodedChunk(m, c.pages) for m, c in zip(metas, chunks, strict=True)]

    def result(self) -> Mapping[str, ColumnStatistics]:
        """The statistics of all chunks so far, by column; no chunks are added afterwards."""
        for column in self._columns:
            raw = self._bounds.pop(column.name, [])
            if raw:
                values = _typed(column, raw)
                self._collector.add_column(column.name, pa.chunked_array([values]))
        return self._collector.result()

    def _decoded(
        self, column: TopColumn, chunks: Sequence[EncodedChunk], rows: int
    ) -> pa.ChunkedArray:
        parts: list[bytes | memoryview] = [MAGIC]
        metas, offset = [], 0
        for chunk in chunks:
            metas.append(footers.moved(chunk.meta, offset))
            parts.extend(chunk.pages)
            offset += sum(map(len, chunk.pages))
        created_by = self._source.fields.get(footers.FileField.CREATED_BY)
        codec = ColumnCodec(column, created_by, Compression(), physical=False)
        return codec.decode(Window(0, pa.py_buffer(b"".join(parts))), metas, rows)


def _without_fixed_bounds(column: TopColumn, chunks: Sequence[EncodedChunk]) -> list[EncodedChunk]:
    """The chunks of a column without bounds of FIXED_LEN_BYTE_ARRAY."""
    leaves = [each for each in column.elements if ElementField.TYPE in each]
    return [
        EncodedChunk(float_bounds.without_bounds(chunk.meta), chunk.pages)
        if number(leaf, ElementField.TYPE) == footers.FIXED_LEN_BYTE_ARRAY
        else chunk
        for leaf, chunk in zip(leaves, chunks, strict=True)
    ]


def exact_bounds(element: Struct, meta: Struct) -> list[bytes] | None:
    """Minimum and maximum of a chunk; empty if it has no values, None if not known exactly."""
    if number(element, ElementField.TYPE) == footers.INT96:
        return None
    if MetaField.STATISTICS not in meta:
        return None
    statistics: Struct = meta[MetaField.STATISTICS].data
    if StatisticsField.NULL_COUNT not in statistics:
        return None
    nulls = number(statistics, StatisticsField.NULL_COUNT)
    if nulls == number(meta, MetaField.NUM_VALUES):
        return []
    bounds = [statistics.get(f) for f in (StatisticsField.MIN_VALUE, StatisticsField.MAX_VALUE)]
    rounded = any(f in statistics and statistics[f].kind == FALSE for f in _EXACTNESS)
    if rounded or not is_ordered(element):
        return None
    present = [bound.data for bound in bounds if bound is not None]
    return present if len(present) == len(bounds) else None


def _typed(column: TopColumn, raw: Sequence[bytes]) -> pa.Array:
    """Bounds as an array of the column's type."""
    element, kind = column.elements[0], column.field.type
    stored_as = number(element, ElementField.TYPE)
    if stored_as == footers.BOOLEAN:
        return pa.array([value != b"\0" for value in raw], pa.bool_())
    if stored_as == footers.BYTE_ARRAY and kind in (pa.string(), pa.binary()):
        return pa.array(raw, pa.binary()).view(kind)
    if stored_as in _NUMBERS and all(len(value) == _NUMBERS[stored_as] for value in raw):
        if pa.types.is_decimal128(kind):
            return _decimals([int.from_bytes(v, "little", signed=True) for v in raw], kind)
        if pa.types.is_temporal(kind) or kind in (pa.int32(), pa.int64()):
            return pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(b"".join(raw))])
    if stored_as == footers.FIXED_LEN_BYTE_ARRAY and pa.types.is_decimal128(kind):
        return _decimals([int.from_bytes(v, "big", signed=True) for v in raw], kind)
    return encodings.decoded(element, encodings.joined(element, raw), len(raw))


def _decimals(unscaled: Sequence[int], kind: pa.Decimal128Type) -> pa.Array:
    return pa.array([_EXACT.scaleb(Decimal(each), -kind.scale) for each in unscaled], kind)
