"""Exact minimum, maximum and NULL count per column, gathered while a file is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.values import decode_value, encode_value

MAX_BOUND_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Bounds and counts of one column of one file; unknown bounds are None.

    A column has no bounds if it has a NaN, nested values, no values at all, or a bound longer than
    ``MAX_BOUND_BYTES``. A bound that is zero includes both zeros: -0.0 is the least, 0.0 the
    greatest. NaN is counted in columns that are not nested.
    """

    minimum: Any
    maximum: Any
    null_count: int
    nan_count: int = 0

    def to_json(self) -> list[Any]:
        """The statistics as JSON data: ``[minimum, maximum, null_count]``, then NaNs if any."""
        bounds = encode_value(self.minimum), encode_value(self.maximum)
        return [*bounds, self.null_count, *([self.nan_count] if self.nan_count else [])]

    @classmethod
    def from_json(cls, document: Sequence[Any]) -> ColumnStatistics:
        """The statistics from the output of ``to_json``."""
        minimum, maximum, *counts = document
        return cls(decode_value(minimum), decode_value(maximum), *counts)


class StatisticsCollector:
    """Collects the statistics of a file from the tables that are written to it."""

    def __init__(self) -> None:
        self._null_counts: dict[str, int] = {}
        self._nan_counts: dict[str, int] = {}
        self._bounds: dict[str, list[pa.Scalar]] = {}
        self._unbounded: set[str] = set()

    def add(self, table: pa.Table) -> None:
        """Add the rows of ``table``."""
        for name, column in zip(table.column_names, table.columns, strict=True):
            self.add_column(name, column)

    def add_column(self, name: str, column: pa.ChunkedArray) -> None:
        """Add values of one column."""
        self.add_nulls(name, column.null_count)
        nans = _nan_count(column)
        self._nan_counts[name] = self._nan_counts.get(name, 0) + nans
        if nans or not _is_ordered(column.type):
            self._unbounded.add(name)
            self._bounds.pop(name, None)
        if name not in self._unbounded:
            self._add_bounds(name, column)

    def add_nulls(self, name: str, count: int) -> None:
        """Add ``count`` NULLs of one column."""
        self._null_counts[name] = self._null_counts.get(name, 0) + count

    def result(self) -> Mapping[str, ColumnStatistics]:
        """The statistics of all tables so far, by column."""
        return {
            name: ColumnStatistics(*self._bounds_of(name), nulls, self._nan_counts.get(name, 0))
            for name, nulls in self._null_counts.items()
        }

    def _add_bounds(self, name: str, column: pa.ChunkedArray) -> None:
        if pa.types.is_dictionary(column.type):
            column = _used_values(column)
        if column.null_count == len(column):
            return
        extremes = pc.min_max(column)
        self._bounds.setdefault(name, []).extend((extremes["min"], extremes["max"]))
        if len(self._bounds[name]) > 64:
            self._bounds[name] = list(_extremes(self._bounds[name]))

    def _bounds_of(self, name: str) -> tuple[Any, Any]:
        if name not in self._bounds:
            return None, None
        low, high = _extremes(self._bounds[name])
        minimum, maximum = _to_python(low, round_up=False), _to_python(high, round_up=True)
        if _is_long(minimum) or _is_long(maximum):
            return None, None
        if isinstance(minimum, float):
            # Neither order of the zeros leaves one out.
            return minimum or -0.0, maximum or 0.0
        return minimum, maximum


def _extremes(scalars: list[pa.Scalar]) -> tuple[pa.Scalar, pa.Scalar]:
    extremes = pc.min_max(pa.array(scalars, scalars[0].type))
    return extremes["min"], extremes["max"]


def _used_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [
        chunk.dictionary.take(pc.unique(chunk.indices).drop_null()) for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, column.type.value_type)


def _is_ordered(kind: pa.DataType) -> bool:
    # pyarrow 19 computes nothing of numbers of two bytes.
    unordered = pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind)
    return not unordered


def _nan_count(column: pa.ChunkedArray) -> int:
    if not (pa.types.is_float32(column.type) or pa.types.is_float64(column.type)):
        return 0
    return int(pc.sum(pc.is_nan(column)).as_py() or 0)


def _is_long(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.encode()) > MAX_BOUND_BYTES
    return isinstance(value, bytes) and len(value) > MAX_BOUND_BYTES


def _to_python(scalar: pa.Scalar, *, round_up: bool) -> Any:
    """The scalar as a Python value; None if Python has none (dates outside years 1 to 9999)."""
    try:
        if pa.types.is_timestamp(scalar.type):
            return _timestamp_to_python(scalar, round_up=round_up)
        return scalar.as_py()
    except (ValueError, OverflowError):
        return None


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _timestamp_to_python(scalar: pa.Scalar, *, round_up: bool) -> datetime:
    """The timestamp in microseconds, Python's finest unit; a bound in nanoseconds is widened."""
    scaled = scalar.value * 1_000_000
    per_second = _PER_SECOND[scalar.type.unit]
    micros = -(-scaled // per_second) if round_up else scaled // per_second
    epoch = datetime(1970, 1, 1, tzinfo=UTC if scalar.type.tz else None)
    return epoch + timedelta(microseconds=micros)
