"""Roaring bitmaps as bytes, against pyroaring's."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from spark_jobs.datafiles.roaring import BrokenBitmapError, bitmap_bytes, bitmap_positions

numbers = st.lists(st.integers(0, 2**32 - 1), max_size=40)
ranges = st.tuples(st.integers(0, 2**19), st.integers(1, 2**17), st.integers(1, 4))


def bitmap_of(single: list[int], several: list[tuple[int, int, int]]) -> BitMap:
    found = BitMap(single)
    for start, length, step in several:
        found |= BitMap(range(start, start + length, step))
    return found


@settings(deadline=None)
@given(single=numbers, several=st.lists(ranges, max_size=4), has_runs=st.booleans())
def test_any_numbers_both_ways(
    single: list[int], several: list[tuple[int, int, int]], has_runs: bool
) -> None:
    bitmap = bitmap_of(single, several)
    expected = list(bitmap)
    if has_runs:
        bitmap.run_optimize()

    assert bitmap_positions(memoryview(bitmap.serialize())).tolist() == expected
    assert list(BitMap.deserialize(bitmap_bytes(np.array(expected, np.int64)))) == expected


def test_other_numbers_than_expected_are_refused_before_they_are_made() -> None:
    data = memoryview(BitMap(range(10)).serialize())

    assert len(bitmap_positions(data, 10)) == 10
    with pytest.raises(BrokenBitmapError, match="10 positions instead of 9"):
        bitmap_positions(data, 9)


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(BrokenBitmapError, match="1 bytes follow its last container"):
        bitmap_positions(memoryview(BitMap([1]).serialize() + b"\0"))


def test_another_cookie_is_refused() -> None:
    with pytest.raises(BrokenBitmapError, match="its cookie is 12345"):
        bitmap_positions(memoryview(struct.pack("<II", 12345, 0)))
