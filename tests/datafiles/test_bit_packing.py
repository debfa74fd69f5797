"""Packed integers against a computation bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.datafiles.parquet.encodings import bit_packed, encode_hybrid


def bit_by_bit(values: list[int], width: int) -> bytes:
    filled = [*values, *[0] * (-len(values) % 8)]
    bits = "".join(f"{value:0{width}b}"[::-1] for value in filled)
    return bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))


@given(width=st.integers(1, 32), data=st.data())
def test_values_take_their_bits(width: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 2**width - 1), max_size=40))

    assert bit_packed(np.array(values, np.uint32), width) == bit_by_bit(values, width)


@pytest.mark.parametrize("width", [1, 7, 8, 17, 32])
def test_blocks_join(width: int) -> None:
    values = np.random.default_rng(0).integers(0, 2**width, 140_001).astype(np.uint32)

    assert bit_packed(values, width) == bit_by_bit(values.tolist(), width)


def test_long_runs_are_told_by_their_length() -> None:
    # 200 times 5, then 100 times 6: twice a length, shifted by one bit, and a value of one byte.
    values = np.repeat([5, 6], [200, 100])

    assert encode_hybrid(values, 3) == bytes([0x90, 0x03, 5, 0xC8, 0x01, 6])
    assert encode_hybrid(np.array([], np.int32), 3) == b""
