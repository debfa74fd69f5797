"""Orders of rows that a statement asks for, as those who sort them take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.contract.compaction_order import SortTerm
from spark_jobs.datafiles.loose_rows import sortable
from spark_jobs.datafiles.z_order import ZFunction
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.writes import DerivedColumns, RowOrder, SortKey


@dataclass(frozen=True, slots=True)
class _Sortable:
    """Computes what rows with ``columns`` of floating-point numbers are sorted by. Picklable."""

    columns: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        return [sortable(batch.column(name)) for name in self.columns]


def sorted_by(schema: pa.Schema, terms: Sequence[SortTerm]) -> RowOrder:
    """The order by columns of ``schema``."""
    floating = {
        term.column: f"{RESERVED_PREFIX}sort_{number}"
        for number, term in enumerate(terms)
        if pa.types.is_floating(schema.field(term.column).type)
    }
    keys = tuple(
        SortKey(floating.get(name, name), ascending, nulls_first)
        for name, ascending, nulls_first in terms
    )
    named = tuple((name, "BIGINT") for name in floating.values())
    columns = tuple(floating)
    derived = DerivedColumns(columns, named, _Sortable(columns)) if columns else None
    return RowOrder(keys, derived)


def z_ordered(terms: Sequence[SortTerm]) -> RowOrder:
    """The z-order by columns."""
    columns, name = tuple(each.column for each in terms), f"{RESERVED_PREFIX}z_value"
    derived = DerivedColumns(columns, ((name, "BINARY"),), ZFunction(columns))
    return RowOrder((SortKey(name),), derived)
