"""Rows of a data file that are in memory, whatever its format. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from spark_jobs.datafiles.key_probe import KeyProbe


class BatchSize(NamedTuple):
    """How large a batch is: about ``size`` bytes in Arrow form, and at most ``rows`` rows."""

    size: int
    rows: int

    def rows_of(self, size: int, row_count: int) -> int:
        """How many of ``row_count`` rows, which have ``size`` bytes together, make a batch."""
        return max(1, min(self.rows, self.size * row_count // max(size, 1)))


def as_decoded(name: str, decoded: pa.Array) -> pa.Array:
    """The rows of a column whose values are what was decoded."""
    del name
    return decoded


class DecodedRows:
    """Some consecutive rows. Implements ``row_groups.RowGroup``.

    ``values`` makes the values of a column from what was decoded.
    """

    def __init__(
        self, table: pa.Table, values: Callable[[str, pa.Array], pa.Array] = as_decoded
    ) -> None:
        self._table = table
        self._values = values
        self.row_count: int = table.num_rows

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """True: there are no statistics."""
        del name, probe
        return True

    def column(self, name: str) -> pa.ChunkedArray:
        """A column for all rows, as decoded."""
        return self._table.column(name)

    def values(self, name: str, decoded: pa.Array) -> pa.Array:
        """Some rows of a column, from those of ``column``."""
        return self._values(name, decoded)

    def parts(self, names: Sequence[str], most: BatchSize) -> Iterator[DecodedRows]:
        """The rows in batches, beside which all of them stay in memory."""
        del names
        for table in slices(self._table, most):
            yield DecodedRows(table, self._values)

    def table(self) -> pa.Table:
        """All columns, as decoded."""
        return self._table


def slices(table: pa.Table, most: BatchSize) -> Iterator[pa.Table]:
    """The rows of ``table`` in batches, which share its memory."""
    rows = most.rows_of(table.nbytes, table.num_rows)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def gathered(steps: Iterable[pa.RecordBatch], most: BatchSize) -> Iterator[pa.Table]:
    """Batches of ``steps``, which are smaller; nothing of a batch is kept here."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for step in steps:
        if waiting and (size >= most.size or rows + step.num_rows > most.rows):
            yield _taken(waiting)
            rows = size = 0
        rows, size = rows + step.num_rows, size + step.nbytes
        waiting.append(step)
        del step
    if waiting:
        yield _taken(waiting)


def _taken(waiting: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(waiting)
    waiting.clear()
    return table
