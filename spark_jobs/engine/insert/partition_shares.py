"""How many rows of a file belong to partitions, by what is known without reading it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from spark_jobs.engine.analysis.partition_specs import Constants
from spark_jobs.engine.analysis.partition_values import comparable
from spark_jobs.spi.tables import ColumnRange, PlannedFile

Partition = tuple[Any, ...]


class Share(IntEnum):
    """Which rows of a file belong: ``min`` is that of AND, ``max`` one that OR has at least."""

    NONE = 0
    SOME = 1
    ALL = 2


def share_of(file: PlannedFile, spec: Constants) -> Share:
    """Which rows belong to the partitions of a spec; SOME if that is not known."""
    fields = (_Values([constant.value]).share(file, name) for name, constant in spec.items())
    return min(fields, default=Share.ALL)


def partition_of(file: PlannedFile, fields: Sequence[str]) -> Partition | None:
    """The partition that all rows of a file belong to; None if it is not known."""
    found = [_only_value(_known(file, name), file.row_count) for name in fields]
    return None if any(each is None for each in found) else tuple(each[0] for each in found if each)


class Occurring:
    """The partitions of new rows, by ``fields``."""

    def __init__(self, fields: Sequence[str], partitions: Sequence[Partition]) -> None:
        self._fields = fields
        self.partitions = frozenset(tuple(map(comparable, each)) for each in partitions)
        self._values = [_Values(values) for values in zip(*self.partitions, strict=True)]

    def share(self, file: PlannedFile) -> Share:
        """Which rows of a file are in one of them."""
        partition = partition_of(file, self._fields)
        if partition is not None:
            occurs = tuple(map(comparable, partition)) in self.partitions
            return Share.ALL if occurs else Share.NONE
        pairs = zip(self._fields, self._values, strict=True) if self._values else ()
        shares = [values.share(file, name) for name, values in pairs]
        return min([Share.SOME, *shares]) if shares else Share.NONE


class _Values:
    """Some values of a field, NULL among them or not."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = set(map(comparable, values))
        some = [each for each in self._values if each is not None]
        # Those of floating fields are not ordered, and have no bounds.
        is_ordered = not any(isinstance(each, float | tuple) for each in some)
        self._ordered = sorted(some) if is_ordered else []

    def share(self, file: PlannedFile, name: str) -> Share:
        """Which rows of a file have one of them; ALL only if they have only one value."""
        known, rows = _known(file, name), file.row_count
        only = _only_value(known, rows)
        if only is not None:
            return Share.ALL if comparable(only[0]) in self._values else Share.NONE
        has_null = None in self._values
        if (has_null and known.null_count != 0) or self._may_lie(known, rows):
            return Share.SOME
        return Share.NONE

    def _may_lie(self, known: ColumnRange, rows: int) -> bool:
        low, high = known.minimum, known.maximum
        if known.null_count is not None and known.null_count == rows:
            return False
        if low is None or high is None:
            return self._values != {None}
        if comparable(low) == comparable(high):
            return comparable(low) in self._values
        first = bisect_left(self._ordered, low)
        return first < len(self._ordered) and bool(self._ordered[first] <= high)


def _known(file: PlannedFile, name: str) -> ColumnRange:
    if name in file.partition:
        value = file.partition[name]
        return ColumnRange(value, value, file.row_count if value is None else 0)
    return file.field_ranges.get(name) or ColumnRange(None, None, None)


def _only_value(known: ColumnRange, rows: int) -> tuple[Any] | None:
    """The only value of a field in a file, in a tuple; None if there may be others."""
    if known.minimum is None and known.null_count is not None and known.null_count == rows:
        return (None,)
    is_one = known.minimum is not None and comparable(known.minimum) == comparable(known.maximum)
    return (known.minimum,) if is_one and known.null_count == 0 else None
