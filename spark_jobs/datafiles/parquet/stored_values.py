"""Decimals and INT96 timestamps of a parquet file, read as the integers or bytes that are stored.

Decoding all decimals takes pyarrow four times as long, though few rows may be wanted. INT96
timestamps it does not always read rightly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import int96
from spark_jobs.datafiles.parquet.footer import ElementField, FileField, Footer, TopColumn, number
from spark_jobs.datafiles.parquet.thrift import STRUCT, Struct, list_of

_LOGICAL = (
    ElementField.CONVERTED_TYPE,
    ElementField.SCALE,
    ElementField.PRECISION,
    ElementField.LOGICAL_TYPE,
)
_STORED_AS = (footers.INT32, footers.INT64, footers.FIXED_LEN_BYTE_ARRAY)
_WIDTH = 16


def as_stored(footer: Footer) -> tuple[pq.FileMetaData, Mapping[str, pa.DataType]]:
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
    """The values of type ``kind`` that are stored as the footer of ``as_stored`` says."""
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
