"""Orders of rows that a statement asks for, as those who sort them take them.

Z-values interleave the bits of several columns as in Iceberg's ``SparkZOrderUDF`` and
``ZOrderByteUtils``: each value becomes 64 bits whose unsigned order is that of the values, NULL
being the lowest, and of the bits of all columns the highest come first. DECIMAL, which Iceberg
refuses, counts as DOUBLE. Runs on executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contract.compaction_order import SortTerm
from spark_jobs.datafiles.loose_rows import sortable
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey

_SIGN: Final = np.uint64(1 << 63)
# ``(byte) -127``, as Iceberg has it.
_TRUE: Final = np.uint64(0x81 << 56)
_BYTES: Final = 8
# So few that their bits, a byte each, take some megabytes.
_ROWS_AT_ONCE: Final = 16 * 1024
_Bits = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Sortable:
    """Computes what rows with ``columns`` of floating-point numbers are sorted by. Picklable."""

    columns: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        return [sortable(batch.column(name)) for name in self.columns]


def sorted_by(schema: pa.Schema, terms: Sequence[SortTerm]) -> RowOrder:
    """The order by columns of ``schema``."""
    floating = {
        term.column: f"{RESERVED_PREFIX}sort_{number}"
        for number, term in enumerate(terms)
        if pa.types.is_floating(schema.field(term.column).type)
    }
    keys = tuple(
        SortKey(floating.get(name, name), ascending, nulls_first)
        for name, ascending, nulls_first in terms
    )
    named = tuple((name, "BIGINT") for name in floating.values())
    columns = tuple(floating)
    derived = DerivedColumns(columns, named, _Sortable(columns)) if columns else None
    return RowOrder(keys, derived)


def z_ordered(terms: Sequence[SortTerm]) -> RowOrder:
    """The z-order by columns."""
    columns, name = tuple(each.column for each in terms), f"{RESERVED_PREFIX}z_value"
    derived = DerivedColumns(columns, ((name, "BINARY"),), ZFunction(columns))
    return RowOrder((SortKey(name),), derived)


@dataclass(frozen=True, slots=True)
class ZFunction:
    """Computes the z-values of rows by ``columns``; for ``DerivedColumns``. Picklable."""

    columns: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values, as binary data."""
        return [z_values([batch.column(name) for name in self.columns])]


def z_values(arrays: Sequence[pa.Array]) -> pa.Array:
    """Binary data of 8 bytes for each of ``arrays``."""
    columns = [unsigned_bits(each) for each in arrays]
    rows, width = len(arrays[0]), _BYTES * len(arrays)
    interleaved = np.empty((rows, width), np.uint8)
    for start in range(0, rows, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        big_endian = np.stack([each[part] for each in columns], axis=1).astype(">u8")
        bits = np.unpackbits(big_endian.view(np.uint8), axis=1)
        by_column = bits.reshape(len(bits), len(columns), 8 * _BYTES)
        interleaved[part] = np.packbits(by_column.transpose(0, 2, 1).reshape(len(bits), -1), axis=1)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), rows, [None, pa.py_buffer(interleaved.tobytes())]
    )


def unsigned_bits(array: pa.Array) -> _Bits:
    """64 bits for each value, in the order of the values; 0 for NULL."""
    kind = array.type
    if pa.types.is_boolean(kind):
        flags = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
        return np.where(flags, _TRUE, np.uint64(0))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _first_bytes(array)
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    numbers = sortable(array)
    if pa.types.is_date32(numbers.type):
        numbers = numbers.cast(pa.int32())
    signed = pc.fill_null(numbers.cast(pa.int64()), np.iinfo(np.int64).min).to_numpy()
    bits: _Bits = signed.view(np.uint64) ^ _SIGN
    return bits


def _first_bytes(array: pa.Array) -> _Bits:
    """The first 8 bytes of texts or binary data, with zeros behind shorter ones."""
    short = pc.binary_slice(pc.fill_null(array.cast(pa.binary()), b""), 0, _BYTES)
    _, offsets, data = short.buffers()
    places = np.frombuffer(offsets, np.int32)[short.offset : short.offset + len(short) + 1]
    content: npt.NDArray[Any] = np.frombuffer(data or b"", np.uint8)
    first_bytes = np.zeros((len(short), _BYTES), np.uint8)
    lengths = np.diff(places)
    rows = np.repeat(np.arange(len(short)), lengths)
    columns = np.arange(len(rows)) - np.repeat(places[:-1] - places[0], lengths)
    first_bytes[rows, columns] = content[places[0] : places[-1]]
    return first_bytes.view(">u8").reshape(-1).astype(np.uint64)
