"""New rows as change rows. Imported by executors: nothing here needs a table library."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.spi import rows


def insert_rows(
    batch: pa.RecordBatch, case_number: int = 0, row_id: pa.DataType | None = None
) -> pa.RecordBatch:
    """New rows as INSERT rows, which ``spi.rows`` describes; ``row_id`` is the type of row ids."""
    count = batch.num_rows
    change = {
        rows.OPERATION: pa.array(np.full(count, rows.INSERT, np.int8)),
        rows.CASE_NUMBER: pa.array(np.full(count, case_number, np.int32)),
        rows.ROW_ID: pa.nulls(count, row_id or pa.null()),
        rows.FROM_UPDATE: pa.array(np.zeros(count, np.bool_)),
    }
    arrays = [*change.values(), *batch.columns]
    return pa.RecordBatch.from_arrays(arrays, [*change, *batch.schema.names])
