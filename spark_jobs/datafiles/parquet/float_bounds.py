"""Bounds of chunks with floating-point values: none that a NaN or a zero would be outside of.

The format lets minimum and maximum leave NaN out, which is above every number to Spark, so that a
chunk with a NaN gets none. A bound that is zero stands for both zeros: -0.0 is the least, 0.0 the
greatest. Runs on executors.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import (
    ElementField,
    MetaField,
    StatisticsField,
    TopColumn,
    number,
)
from spark_jobs.datafiles.parquet.thrift import Struct

# The field of ``LogicalType`` in ``parquet.thrift`` that stands for numbers of two bytes.
_FLOAT16: Final = 15
_FORMATS: Final = {footers.FLOAT: "<f", footers.DOUBLE: "<d"}


def leaves_with_nan(kind: pa.DataType, chunks: Sequence[pa.Array]) -> Iterator[bool]:
    """Whether there is a NaN in each leaf of a column of type ``kind``, depth first."""
    if not has_floats(kind):
        yield from [False] * _leaf_count(kind)
    elif pa.types.is_struct(kind):
        children = [chunk.flatten() for chunk in chunks]
        for index, field in enumerate(kind):
            yield from leaves_with_nan(field.type, [each[index] for each in children])
    elif pa.types.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        lists = pa.list_(pa.field("entries", entry, nullable=False))
        yield from leaves_with_nan(lists, [chunk.cast(lists) for chunk in chunks])
    elif pa.types.is_nested(kind):
        # Of an empty list, pyarrow's flatten may read offsets that are not there.
        values = [chunk.flatten() for chunk in chunks if len(chunk)]
        yield from leaves_with_nan(kind.value_type, values)
    else:
        yield any(map(_has_nan, chunks))


def has_floats(kind: pa.DataType) -> bool:
    """Whether values of a type are, or contain, floating-point numbers."""
    if not pa.types.is_nested(kind):
        return bool(pa.types.is_floating(kind))
    return any(has_floats(kind.field(index).type) for index in range(kind.num_fields))


def without_bounds(meta: Struct) -> Struct:
    """The ColumnMetaData of a chunk without a minimum and maximum."""
    if MetaField.STATISTICS not in meta:
        return meta
    statistics: Struct = meta[MetaField.STATISTICS].data
    left = {k: v for k, v in statistics.items() if k == StatisticsField.NULL_COUNT}
    return {**meta, MetaField.STATISTICS: thrift.struct(left)}


def sound_bounds(
    column: TopColumn, metas: Sequence[Struct], values: pa.ChunkedArray
) -> list[Struct]:
    """The ColumnMetaData of a column's chunks, which hold ``values``, without unsound bounds."""
    if not has_floats(values.type):
        return list(metas)
    leaves = [each for each in column.elements if ElementField.TYPE in each]
    nans = leaves_with_nan(values.type, values.chunks)
    return [
        without_bounds(meta) if nan else _of_numbers(leaf, meta)
        for leaf, meta, nan in zip(leaves, metas, nans, strict=True)
    ]


def _of_numbers(leaf: Struct, meta: Struct) -> Struct:
    """The ColumnMetaData of a chunk without NaN; a bound that is zero includes the other zero."""
    format_ = _format_of(leaf)
    if format_ is None or MetaField.STATISTICS not in meta:
        return meta
    statistics: Struct = meta[MetaField.STATISTICS].data
    widened = dict(statistics)
    for field in StatisticsField.BOUNDS:
        if field not in statistics:
            continue
        raw = statistics[field].data
        bound = struct.unpack(format_, raw)[0] if len(raw) == struct.calcsize(format_) else math.nan
        if math.isnan(bound):
            return without_bounds(meta)
        if bound == 0:
            zero = -0.0 if field in StatisticsField.MINIMA else 0.0
            widened[field] = thrift.binary(struct.pack(format_, zero))
    return {**meta, MetaField.STATISTICS: thrift.struct(widened)}


def _format_of(leaf: Struct) -> str | None:
    """How a leaf stores numbers, in the terms of ``struct``; None: it is not floating."""
    logical = leaf.get(ElementField.LOGICAL_TYPE)
    if logical is not None and _FLOAT16 in logical.data:
        return "<e"
    return _FORMATS.get(number(leaf, ElementField.TYPE))


def _leaf_count(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaf_count(kind.field(index).type) for index in range(kind.num_fields))


def _has_nan(array: pa.Array) -> bool:
    if pa.types.is_float16(array.type):
        # pyarrow 19 computes nothing of them.
        return bool(np.isnan(array.drop_null().to_numpy(zero_copy_only=False)).any())
    return bool(pc.sum(pc.is_nan(array)).as_py())
