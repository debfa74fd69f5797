"""Brings rows that come in any order into the order of a layout, in bounded memory.

Runs on executors. For rows that a task makes itself; those that Spark distributes are sorted by it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.spi.writes import RowOrder, SortKey, WriteLayout


class PlacedRows(Protocol):
    """Stores rows that come in the order of their layout, with its derived columns."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Take the next rows."""

    def end_file(self) -> None:
        """Put further rows into another file."""


class LooseRows:
    """Takes rows of a table in any order and passes them on to ``placed``.

    If ``layout`` sorts them, as many at a time as fill ``most_bytes`` in Arrow; each time, they go
    into files of their own.
    """

    def __init__(self, layout: WriteLayout, most_bytes: int, placed: PlacedRows) -> None:
        self._layout = layout
        self._most_bytes = most_bytes
        self._placed = placed
        self._kept: list[pa.RecordBatch] = []
        self._size = 0

    def take(self, rows: pa.RecordBatch) -> None:
        """Take the next rows, with all columns of the table; raises what ``placed`` raises."""
        order = self._layout.row_order
        for derived in (self._layout.derived, order and order.derived):
            rows = derived.added_to(rows) if derived else rows
        if order is None:
            self._placed.write(rows)
            return
        self._kept.append(rows)
        self._size += rows.nbytes
        if self._size >= self._most_bytes:
            self._pass_on(order)

    def finish(self) -> None:
        """Pass the last rows on; raises what ``placed`` raises."""
        if self._layout.row_order is not None and self._kept:
            self._pass_on(self._layout.row_order)

    def _pass_on(self, order: RowOrder) -> None:
        table = pa.Table.from_batches(self._kept)
        self._kept, self._size = [], 0
        keys = [*map(SortKey, self._layout.order_by), *order.keys]
        self._placed.end_file()
        for batch in in_order(table, keys).to_batches():
            self._placed.write(batch)
        self._placed.end_file()


def in_order(rows: pa.Table, keys: list[SortKey]) -> pa.Table:
    """``rows`` sorted by ``keys``, which are of no floating type."""
    rows = rows.combine_chunks()
    columns, wanted = {}, []
    for number, key in enumerate(keys):
        values = rows.column(key.column)
        if values.null_count:
            # Arrow has one place for the NULLs of all keys.
            columns[f"null{number}"] = values.is_null()
            wanted.append((f"null{number}", "descending" if key.nulls_first else "ascending"))
        columns[f"value{number}"] = values
        wanted.append((f"value{number}", "ascending" if key.ascending else "descending"))
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=wanted))


def sortable(array: pa.Array) -> pa.Array:
    """Values that Spark and Arrow sort alike: floating ones as integers in the order of Java's.

    That is -0.0 before 0.0, and NaN behind all others.
    """
    if not pa.types.is_floating(array.type):
        return array
    values = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy()
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    found = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return pa.array(found, mask=array.is_null().to_numpy(zero_copy_only=False))
