"""Appends change rows to one bucket as records of level 0. Runs on executors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.file_columns import (
    DELETE_KIND,
    INSERT_KIND,
    UPDATE_AFTER_KIND,
)
from spark_jobs.connectors.paimon.keyed.key_order import equal_to_previous
from spark_jobs.connectors.paimon.keyed.keyed_schema import KeyedSchema
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter
from spark_jobs.spi import rows

_KINDS = {
    rows.INSERT: INSERT_KIND,
    rows.UPDATE: UPDATE_AFTER_KIND,
    rows.DELETE: DELETE_KIND,
}


class BucketAppender:
    """Writes one record per key; ``first`` is the sequence number of the first."""

    def __init__(self, schema: KeyedSchema, first: int, writer: SortedRunWriter) -> None:
        self._schema = schema
        self._next = first
        self._writer = writer

    def apply(self, changes: pa.Table) -> None:
        """Take the next changes with all columns, in key order; all those of a key together.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
        """
        # Where a row is deleted and inserted anew, only the new row counts.
        is_last = np.append(~equal_to_previous(changes, self._schema.key)[1:], [True])
        records = changes.filter(pa.array(is_last))
        operations = records.column(rows.OPERATION).to_numpy()
        kinds = np.zeros(records.num_rows, np.int8)
        for operation, kind in _KINDS.items():
            kinds[operations == operation] = kind
        numbers = self._next + np.arange(records.num_rows, dtype=np.int64)
        self._next += records.num_rows
        columns = records.select(self._schema.columns.names)
        self._writer.write(columns, pa.array(numbers), pa.array(kinds))

    def finish(self) -> None:
        """Nothing is pending."""
