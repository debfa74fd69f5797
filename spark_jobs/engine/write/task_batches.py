"""The batches of a task: joined, as change rows, and their distinct rows as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.spi import rows

# Up to here, what is done once for a batch takes longer than joining batches.
_MOST_ROWS: Final = 16_000
_MOST_BYTES: Final = 8 * 1024 * 1024


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of ``batches`` in fewer ones, without those that are empty.

    Batches with lists or maps stay as they are: Spark leaves offsets out of empty ones.
    """
    waiting: list[pa.RecordBatch] = []
    row_count = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if not batch.num_columns or any(map(_has_lists, batch.schema.types)):
            yield batch
            continue
        waiting.append(batch)
        row_count += batch.num_rows
        size += batch.get_total_buffer_size()
        if row_count >= _MOST_ROWS or size >= _MOST_BYTES:
            yield pa.concat_batches(waiting)
            waiting, row_count, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def _has_lists(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_lists(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_nested(kind))


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


def row_codes(columns: Sequence[pa.DictionaryArray], row_count: int) -> npt.NDArray[np.int64]:
    """A number for each row, from 0 without gaps: equal rows of ``columns`` have the same one.

    The columns must be encoded such that NULL has an index, too.
    """
    codes = np.zeros(row_count, dtype=np.int64)
    for each in columns:
        pairs = codes * (len(each.dictionary) + 1) + each.indices.to_numpy()
        codes = np.unique(pairs, return_inverse=True)[1]
    return codes
