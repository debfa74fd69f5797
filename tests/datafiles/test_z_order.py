"""Z-values, beside what the definition says of one row after another."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.row_orders import unsigned_bits, z_values

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "byte": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "decimal": (pa.decimal128(20, 0), st.decimals(-(10**15), 10**15, places=0)),
    "date": (pa.date32(), st.dates()),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "text": (pa.string(), st.text(max_size=12)),
    "bytes": (pa.binary(), st.binary(max_size=12)),
}


def number(kind: str, value: Any) -> int:
    """The 64 bits of a value, as a number."""
    if value is None:
        return 0
    if kind == "bool":
        return 0x81 << 56 if value else 0
    if kind in ("text", "bytes"):
        data = value.encode() if isinstance(value, str) else value
        return int.from_bytes((data + bytes(8))[:8], "big")
    if kind in ("float", "double", "decimal"):
        # As Java's doubleToLongBits, which knows one NaN.
        is_nan = value != value
        (bits,) = struct.unpack(">Q", struct.pack(">d", float(value)))
        bits = 0x7FF8 << 48 if is_nan else bits
        return bits ^ (2**64 - 1 if bits >> 63 else 1 << 63)
    if kind == "date":
        value = (value - date(1970, 1, 1)).days
    if kind == "at":
        value = (value - _EPOCH) // _MICROSECOND
    return int(value) + 2**63


def interleaved(numbers: list[int]) -> bytes:
    """Bit by bit from the highest on, of each number in turn."""
    found = 0
    for bit in range(63, -1, -1):
        for each in numbers:
            found = found << 1 | each >> bit & 1
    return found.to_bytes(8 * len(numbers), "big")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_bits_are_interleaved(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, max_size=4))
    rows = data.draw(
        st.lists(st.tuples(*(st.none() | _VALUES[each][1] for each in kinds)), max_size=9)
    )
    arrays = [
        # With an offset, as slices of batches have it.
        pa.array([None, *(row[column] for row in rows)], _VALUES[kind][0]).slice(1)
        for column, kind in enumerate(kinds)
    ]
    found = z_values(arrays).to_pylist()
    assert found == [
        interleaved([number(kind, value) for kind, value in zip(kinds, row, strict=True)])
        for row in rows
    ]


_ORDERED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [None, True]),
    (pa.int16(), [None, -5, -1, 0, 1, 300]),
    (pa.float64(), [None, -float("inf"), -1.5, -0.0, 0.0, 5e-324, 1.5, float("inf"), float("nan")]),
    (pa.decimal128(5, 2), [None, Decimal("-1.10"), Decimal("0.00"), Decimal("0.01")]),
    (pa.date32(), [None, date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1)]),
    (pa.string(), [None, "a", "ab", "ä", "\uffee", "\U0001f600"]),
    (pa.binary(), [None, b"\x00\x01", b"\x7f", b"\x80", b"\xff"]),
]


@pytest.mark.parametrize(("kind", "values"), _ORDERED)
def test_bits_are_in_the_order_of_values(kind: pa.DataType, values: list[Any]) -> None:
    bits = unsigned_bits(pa.array(values, kind)).tolist()
    assert bits[0] == 0
    assert all(low < high for low, high in pairwise(bits))


def test_many_rows_are_as_few() -> None:
    longs = pa.array(range(40_000), pa.int64())
    found = z_values([longs, longs]).to_pylist()
    assert found[20_000] == interleaved([20_000 + 2**63] * 2)
    assert found == sorted(found)
