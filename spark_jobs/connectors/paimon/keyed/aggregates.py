"""Paimon's aggregate functions over the records of each key. Runs on executors.

After Paimon's ``FieldAggregator`` classes: a function folds the records of a key from old to new.
Functions whose result would differ in any case are not here, and tables that use them are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.errors import DataError, ErrorCode

_MOST_DIGITS: Final = 75
Indices = npt.NDArray[np.int64]


def aggregated(
    function: str, values: pa.ChunkedArray, starts: Indices, lasts: Indices
) -> pa.ChunkedArray:
    """The value of each key, whose records are at ``starts`` to ``lasts``, both inclusive.

    Raises:
        DataError: VALUE_NOT_STORABLE: a sum does not fit its type.
    """
    if function in _PICKED:
        places = _PICKED[function](values, starts, lasts)
        return values.take(pa.array(places, mask=places < 0))
    fold = _FOLDS[function]
    folded = _folded(fold, values.combine_chunks(), starts, lasts)
    return pa.chunked_array([folded], values.type)


def _last(values: pa.ChunkedArray, starts: Indices, lasts: Indices) -> Indices:
    return lasts


def _first(values: pa.ChunkedArray, starts: Indices, lasts: Indices) -> Indices:
    return starts


def _last_valid(values: pa.ChunkedArray, starts: Indices, lasts: Indices) -> Indices:
    """The place of each key's last value that is not NULL; -1 for none."""
    if not values.null_count:
        return lasts
    valid = values.is_valid().to_numpy()
    found: Indices = np.maximum.reduceat(np.where(valid, np.arange(len(valid)), -1), starts)
    return found


def _first_valid(values: pa.ChunkedArray, starts: Indices, lasts: Indices) -> Indices:
    if not values.null_count:
        return starts
    valid, none = values.is_valid().to_numpy(), len(values)
    found = np.minimum.reduceat(np.where(valid, np.arange(len(valid)), none), starts)
    return np.where(found == none, -1, found).astype(np.int64)


def _folded(
    fold: Callable[[Any, Any], Any], values: pa.Array, starts: Indices, lasts: Indices
) -> pa.Array:
    """``fold`` over the values of each key in order; a NULL leaves the result as it is."""
    result = values.take(pa.array(starts))
    for rank in range(1, int((lasts - starts).max(initial=0)) + 1):
        keys = np.flatnonzero(lasts - starts >= rank)
        old, new = result.take(pa.array(keys)), values.take(pa.array(starts[keys] + rank))
        both = pc.and_(pc.is_valid(old), pc.is_valid(new))
        merged = pc.if_else(both, fold(old, new), pc.coalesce(old, new))
        places = np.arange(len(result))
        places[keys] = len(result) + np.arange(len(keys))
        result = pa.concat_arrays([result, merged.cast(values.type)]).take(pa.array(places))
    return result


def _sum(old: pa.Array, new: pa.Array) -> pa.Array:
    if pa.types.is_decimal(old.type):
        try:
            wide = pa.decimal256(_MOST_DIGITS, old.type.scale)
            return pc.add(old.cast(wide), new.cast(wide)).cast(old.type)
        except pa.ArrowInvalid as error:
            raise DataError(
                ErrorCode.VALUE_NOT_STORABLE,
                f"a sum of the table's merge engine does not fit {old.type}: {error}",
                "Give the column more digits.",
            ) from None
    return pc.add(old, new)


def _larger(old: pa.Array, new: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater(new, old), new, old)


def _smaller(old: pa.Array, new: pa.Array) -> pa.Array:
    return pc.if_else(pc.less(new, old), new, old)


_PICKED: Final[Mapping[str, Callable[[Any, Indices, Indices], Indices]]] = {
    "last_value": _last,
    "last_non_null_value": _last_valid,
    "first_value": _first,
    "first_non_null_value": _first_valid,
    "first_not_null_value": _first_valid,
}
_FOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "sum": _sum,
    "max": _larger,
    "min": _smaller,
    "bool_and": pc.and_,
    "bool_or": pc.or_,
}

FUNCTIONS: Final = (*_PICKED, *_FOLDS)
