"""Finds the rows that have one of a given set of values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# An odd number near 2**64 divided by the golden ratio (Knuth, TAOCP vol. 3, 6.4).
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_VALUE = 32
_MOST_BITS = 26
# Few enough for their numbers to stay in the processor's cache from one step to the next.
_ROWS_AT_ONCE = 32_768

Mask = npt.NDArray[np.bool_]


class KeyProbe:
    """Finds the rows whose value is among ``values`` (ascending, distinct, without NULL).

    Integers and dates are first looked up in a bitmap of their hashes, so that few need a binary
    search; Arrow's ``is_in`` would hash all values again for each array.
    """

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._is_numeric = pa.types.is_integer(values.type) or pa.types.is_date32(values.type)
        if self._is_numeric:
            self._numbers = _numbers(values)
            bits = max(8, (len(values) * _SLOTS_PER_VALUE).bit_length())
            self._shift = np.uint64(64 - min(bits, _MOST_BITS))
            self._slots = np.zeros(1 << min(bits, _MOST_BITS), dtype=bool)
            self._slots[self._slots_of(self._numbers)] = True

    @property
    def type(self) -> pa.DataType:
        """The type of the values, and of the columns to probe."""
        return self._values.type

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        numbers = self._numbers.nbytes + self._slots.nbytes if self._is_numeric else 0
        return int(self._values.nbytes) + int(numbers)

    def may_be_within(self, low: int, high: int) -> bool:
        """False if none of the values, integers or dates, lies between the bounds, inclusive."""
        first = np.searchsorted(self._numbers, low)
        return bool(first < len(self._numbers) and self._numbers[first] <= high)

    def found(self, column: pa.ChunkedArray) -> Mask:
        """A mask of the rows; NULL is never found."""
        if not self._is_numeric:
            among: Mask = pc.is_in(column, value_set=self._values, skip_nulls=True).to_numpy()
            return among
        mask = np.zeros(len(column), dtype=bool)
        start = 0
        for chunk in column.chunks:
            for offset in range(0, len(chunk), _ROWS_AT_ONCE):
                rows = chunk.slice(offset, _ROWS_AT_ONCE)
                mask[start : start + len(rows)] = self._among(rows)
                start += len(rows)
        return mask

    def _among(self, rows: pa.Array) -> Mask:
        numbers = _numbers(rows)
        candidates = np.flatnonzero(self._slots[self._slots_of(numbers)])
        wanted = numbers[candidates]
        places = np.searchsorted(self._numbers[:-1], wanted)
        mask = np.zeros(len(rows), dtype=bool)
        mask[candidates[self._numbers[places] == wanted]] = True
        return mask & rows.is_valid().to_numpy(zero_copy_only=False) if rows.null_count else mask

    def _slots_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        slots = numbers.view(np.uint64) * _FACTOR
        slots >>= self._shift
        return slots


def _numbers(array: pa.Array) -> npt.NDArray[np.int64]:
    """Integers or dates as 64-bit numbers in the same order, 0 for NULL."""
    if pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    if array.null_count:
        array = pc.fill_null(array, 0)
    numbers: npt.NDArray[np.int64] = array.to_numpy().astype(np.int64, copy=False)
    return numbers
