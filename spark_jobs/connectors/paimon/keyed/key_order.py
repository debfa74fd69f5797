"""Comparing keys of sorted rows. Runs on executors.

Keys are ordered as in Paimon: strings by their bytes in UTF-8, binary values by unsigned bytes.
pyarrow and Spark order them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def rows_up_to(rows: pa.Table, names: Sequence[str], key: Sequence[Any]) -> int:
    """The number of ``rows``, which are sorted by the columns ``names``, at or below ``key``.

    ``key`` has a scalar or a Python value for each column.
    """
    return _position(rows, names, key, pc.less_equal)


def rows_before(rows: pa.Table, names: Sequence[str], key: Sequence[Any]) -> int:
    """The number of ``rows``, which are sorted by the columns ``names``, below ``key``."""
    return _position(rows, names, key, pc.less)


def _position(
    rows: pa.Table, names: Sequence[str], key: Sequence[Any], last: Callable[..., Any]
) -> int:
    """How many rows compare below ``key``; ``last`` compares the last column."""
    start = 0
    end: int = rows.num_rows
    for index, (name, value) in enumerate(zip(names, key, strict=True)):
        column = rows.column(name).slice(start, end - start)
        bound = value if isinstance(value, pa.Scalar) else pa.scalar(value, column.type)
        if index == len(names) - 1:
            reached = _true(last(column, bound))
            return start + reached
        below, reached = _true(pc.less(column, bound)), _true(pc.less_equal(column, bound))
        start, end = start + below, start + reached
    return end


def equal_to_previous(rows: pa.Table, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each row has the same values in the columns ``names`` as the row before it."""
    same = np.ones(rows.num_rows, dtype=np.bool_)
    same[:1] = False
    for name in names:
        column = rows.column(name)
        equal = pc.equal(column.slice(1), column.slice(0, max(rows.num_rows - 1, 0)))
        same[1:] &= pc.fill_null(equal, False).to_numpy()
    return same


def is_ascending(rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether each row has a larger key, in the columns ``names``, than the row before it."""
    if rows.num_rows < 2:
        return True
    undecided = np.ones(rows.num_rows - 1, dtype=np.bool_)
    for name in names:
        column = rows.column(name)
        before, after = column.slice(0, rows.num_rows - 1), column.slice(1)
        if pc.any(pc.and_(pa.array(undecided), pc.greater(before, after))).as_py():
            return False
        undecided &= pc.equal(before, after).to_numpy()
        if not undecided.any():
            return True
    return False


def _true(mask: pa.ChunkedArray) -> int:
    count: int = pc.sum(mask).as_py() or 0
    return count
