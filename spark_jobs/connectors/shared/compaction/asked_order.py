"""What a compaction is asked to sort the rows of a table by. Driver only."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_order import SortTerm, resolved_terms
from spark_jobs.datafiles.row_orders import sorted_by, z_ordered
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import RowOrder


def asked_terms(table: TableHandle, spec: CompactSpec) -> tuple[SortTerm, ...]:
    """The terms of ``sort_by`` or ``zorder_by``; none if neither is given.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    if spec.asked_order is None:
        return ()
    columns = (*table.columns, *table.opaque_columns)
    types = {each.name: each.type for each in columns}
    return resolved_terms(*spec.asked_order, str(table.name), types)


def asked_order(table: TableHandle, spec: CompactSpec, schema: pa.Schema) -> RowOrder | None:
    """The order of rows with ``schema``; None if none is asked for. Raises as ``asked_terms``."""
    terms = asked_terms(table, spec)
    if not terms:
        return None
    return z_ordered(terms) if spec.zorder_by else sorted_by(schema, terms)
