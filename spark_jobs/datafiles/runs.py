"""Runs of adjacent rows that belong together, and distinct numbers in order. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Number = TypeVar("Number", bound=np.generic)


def runs_of_equal(row_count: int, keys: Sequence[npt.NDArray[Any]]) -> Iterator[tuple[int, int]]:
    """Start and end of each run of rows with equal ``keys``, arrays of one number per row."""
    if row_count == 0:
        return
    changes = np.zeros(row_count - 1, dtype=np.bool_)
    for numbers in keys:
        changes |= numbers[1:] != numbers[:-1]
    yield from pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), row_count])


def codes_of(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A number per value, the same for equal values; NULL equals NULL."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: npt.NDArray[Any] = encoded.indices.to_numpy()
    return codes


def distinct(*numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers of all arrays, ascending."""
    ordered = np.sort(np.concatenate(numbers), kind="stable")
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
