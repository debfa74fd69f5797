"""Floating-point values that bounds leave out easily, and what must hold of a file's bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import (
    ChunkField,
    ElementField,
    FileField,
    GroupField,
    MetaField,
    number,
)
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct

# Quiet, signalling and negative ones, with and without a payload.
NAN_BITS: Final = {
    pa.float32(): (0x7FC00000, 0x7F800001, 0xFFC00000, 0x7FC0BEEF),
    pa.float64(): (0x7FF8 << 48, (0x7FF0 << 48) + 1, 0xFFF8 << 48, (0x7FF8 << 48) + 0xBEEF),
}
PLAIN: Final = (0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e-30, 7.0)
_WIDTHS: Final = {footers.FLOAT: ("<f", "<i"), footers.DOUBLE: ("<d", "<q")}
MINIMA: Final = (2, 6)
MAXIMA: Final = (1, 5)


def array_of(kind: pa.DataType, values: list[float | int | None]) -> pa.Array:
    """Numbers; integers are the bits of NaNs, which Python would not keep."""
    code = "<i4" if kind == pa.float32() else "<i8"
    raw = np.array([v if isinstance(v, float) else 0.0 for v in values], kind.to_pandas_dtype())
    bits = raw.view(code)
    for place, value in enumerate(values):
        if isinstance(value, int):
            bits[place : place + 1] = np.array([value], f"<u{kind.bit_width // 8}").view(code)
    return pa.array(raw, kind, mask=np.array([v is None for v in values], bool))


def footer_of(path: Any) -> Struct:
    with pa.OSFile(str(path)) as file:
        return footers.read_footer(file).fields


def float_leaves(fields: Struct) -> Iterator[tuple[int, int, Struct]]:
    """Row group, number of the leaf, and ColumnMetaData of each chunk of FLOAT or DOUBLE."""
    leaves = [e for e in footers.items(fields[FileField.SCHEMA]) if ElementField.TYPE in e]
    for group, each in enumerate(footers.items(fields[FileField.ROW_GROUPS])):
        chunks = zip(leaves, footers.chunks_of(each), strict=True)
        for leaf, (element, chunk) in enumerate(chunks):
            assert not any(field in chunk for field in ChunkField.PAGE_INDEXES)
            assert not any(field in footers.meta_of(chunk) for field in MetaField.BLOOM_FILTER)
            if number(element, ElementField.TYPE) in _WIDTHS:
                yield group, leaf, footers.meta_of(chunk)


def require_sound_bounds(path: Any) -> None:
    """No bounds beside a NaN; others include every value, -0.0 below 0.0."""
    file = pq.ParquetFile(path)
    for group, leaf, meta in float_leaves(footer_of(path)):
        statistics = meta[MetaField.STATISTICS].data if MetaField.STATISTICS in meta else {}
        values = leaf_values(file, group, leaf)
        bounds = {f: statistics[f].data for f in (*MINIMA, *MAXIMA) if f in statistics}
        if np.isnan(values).any():
            assert not bounds
            continue
        kind = number(meta, MetaField.TYPE)
        for field, raw in bounds.items():
            (bound,) = struct.unpack(_WIDTHS[kind][0], raw)
            assert not np.isnan(bound)
            if bound == 0:
                assert np.signbit(bound) == (field in MINIMA)
            ordered = [_key(value) for value in values]
            if ordered and field in MINIMA:
                assert _key(bound) <= min(ordered)
            elif ordered:
                assert _key(bound) >= max(ordered)


def _key(value: float) -> tuple[float, bool]:
    return float(value), not np.signbit(value)


def leaf_values(file: pq.ParquetFile, group: int, leaf: int) -> np.ndarray:
    """The values of a leaf that are not NULL."""
    (column,) = file.reader.read_row_group(group, column_indices=[leaf]).columns
    values = [column.combine_chunks()] if isinstance(column, pa.ChunkedArray) else [column]
    found = values[0]
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks)
    while pa.types.is_nested(found.type):
        if pa.types.is_struct(found.type):
            (found,) = found.flatten()
        elif pa.types.is_map(found.type):
            found = found.items
        else:
            found = found.flatten()
    return found.drop_null().to_numpy(zero_copy_only=False)


def has_page_bounds(path: Any, meta: Struct) -> bool:
    """Whether the header of any data page of a chunk has statistics with bounds."""
    start, end = footers.chunk_range(meta)
    raw = memoryview(Path(path).read_bytes())[start:end]
    position = 0
    while position < len(raw):
        header, length = thrift.parse_prefix(raw[position:])
        position += length + number(header, 3)
        for about, statistics in ((5, 5), (8, 8)):
            if about in header and statistics in header[about].data:
                found = header[about].data[statistics].data
                if any(field in found for field in (*MINIMA, *MAXIMA)):
                    return True
    return False


def with_narrow_bounds(source: Any, bound: float | None) -> None:
    """Let the footer of a file tell bounds as careless writers do, and bloom filters.

    Zeros are as they come, NaN is left out, deprecated fields have the same; ``bound``: that value
    in place of the maximum.
    """
    raw = source.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    fields, _ = thrift.parse(raw[-8 - length : -8])
    file = pq.ParquetFile(source)
    groups = [dict(each) for each in footers.items(fields[FileField.ROW_GROUPS])]
    chunks = [[dict(chunk) for chunk in footers.chunks_of(each)] for each in groups]
    for group, leaf, meta in float_leaves(_without_indexes(fields)):
        values = leaf_values(file, group, leaf)
        known = values[~np.isnan(values)]
        if MetaField.STATISTICS not in meta or not len(known):
            continue
        code, _ = _WIDTHS[number(meta, MetaField.TYPE)]
        low, high = known.min(), known.max() if bound is None else bound
        told = dict(meta[MetaField.STATISTICS].data)
        told |= {f: thrift.binary(struct.pack(code, low)) for f in MINIMA}
        told |= {f: thrift.binary(struct.pack(code, high)) for f in MAXIMA}
        told = dict(sorted(told.items()))
        new = {**meta, MetaField.STATISTICS: thrift.struct(told), 14: thrift.i64(4)}
        chunks[group][leaf][ChunkField.META_DATA] = thrift.struct(new)
    for each, new_chunks in zip(groups, chunks, strict=True):
        each[GroupField.COLUMNS] = thrift.list_of(STRUCT, new_chunks)
    fields[FileField.ROW_GROUPS] = thrift.list_of(STRUCT, groups)
    source.write_bytes(raw[: -8 - length] + footers.framed(fields))


def _without_indexes(fields: Struct) -> Struct:
    groups = []
    for group in footers.items(fields[FileField.ROW_GROUPS]):
        chunks = [
            {k: v for k, v in chunk.items() if k not in ChunkField.PAGE_INDEXES}
            for chunk in footers.chunks_of(group)
        ]
        groups.append({**group, GroupField.COLUMNS: thrift.list_of(STRUCT, chunks)})
    return {**fields, FileField.ROW_GROUPS: thrift.list_of(STRUCT, groups)}
