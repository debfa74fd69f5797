"""The cardinality rule at the sink, where changes of one target row are adjacent (rule 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contract.sql_literals import sql_literal
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink

_NAMED_ROWS = 3


class CardinalityCheck:
    """Checks a task's change rows batch by batch; remembers the last row id across batches.

    Only rows that take effect arrive here and, under the strict rule, also bare row ids of matched
    rows (operation -1). So every repeated row id is an error, unless ``allows_repeated``.
    """

    def __init__(self, sink: MergeSink, on_columns: Sequence[str], allows_repeated: bool) -> None:
        self._sink = sink
        self._on_columns = on_columns
        self._allows_repeated = allows_repeated
        self._last: pa.RecordBatch | None = None
        self._case_before: int | None = None

    def checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` without bare row ids and repeated DELETEs.

        Raises:
            DataError: MERGE_TARGET_ROW_MULTIPLE_MATCHES with clause numbers and key values.
        """
        repeated = self._repeated(batch)
        if repeated.any() and not self._allows_repeated:
            raise self._error(batch, repeated)
        operation = batch.column(rows.OPERATION).to_numpy(zero_copy_only=False)
        keep = ~repeated & (operation != rows.NO_OPERATION)
        return batch if keep.all() else batch.filter(pa.array(keep))

    def _repeated(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows have the same row id as the row before."""
        keys = batch.select([rows.ROW_ID, rows.CASE_NUMBER])
        previous, self._last = self._last, keys.slice(keys.num_rows - 1)
        row_id = keys.column(rows.ROW_ID)
        if previous is not None:
            row_id = pa.concat_arrays([previous.column(rows.ROW_ID), row_id])
        same = np.ones(len(row_id) - 1, dtype=bool)
        for field in row_id.flatten():
            equal = pc.equal(field.slice(1), field.slice(0, len(field) - 1))
            same &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
        if previous is None:
            return np.concatenate([[False], same])
        self._case_before = previous.column(rows.CASE_NUMBER)[0].as_py()
        return same

    def _error(self, batch: pa.RecordBatch, repeated: npt.NDArray[np.bool_]) -> DataError:
        cases = batch.column(rows.CASE_NUMBER).to_pylist()
        at = np.flatnonzero(repeated)
        involved = {cases[i] for i in at} | {cases[i - 1] if i else self._case_before for i in at}
        clauses = sorted(case + 1 for case in involved if case is not None and case >= 0)
        row_ids = [batch.column(rows.ROW_ID)[int(i)].as_py() for i in at]
        distinct = list({str(row_id): row_id for row_id in row_ids}.values())
        named = [self._sink.read_row(row_id, self._on_columns) for row_id in distinct[:_NAMED_ROWS]]
        shown = (", ".join(f"{k}={sql_literal(v)}" for k, v in row.items()) for row in named)
        keys = "; ".join(shown)
        by = f"clause {', '.join(map(str, clauses))}" if clauses else "the ON condition"
        return DataError(
            ErrorCode.MERGE_TARGET_ROW_MULTIPLE_MATCHES,
            f"more than one source row applies to one target row (by {by}): target row with {keys}",
            "Make the source unique on the ON columns: deduplicate(source, by=[...], "
            "order_by=[...]); or narrow the clause conditions.",
        )
