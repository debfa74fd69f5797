"""The cardinality rule at the sink, where changes of one target row are adjacent (rule 2).

New rows of equal keys among the changes of one task are refused, too. Imported by executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contract.sql_text import sql_conditions, sql_literal
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink


_NAMED_ROWS = 3
_NAMED_KEYS = 3


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


class KeyCheck:
    """Checks a task's change rows batch by batch; remembers the last one across batches.

    ``key_columns`` are the primary key, in whose order the rows come; empty for a table without
    one. ``labels`` name the cases in errors.
    """

    def __init__(self, key_columns: Sequence[str], labels: Sequence[str]) -> None:
        self._key_columns = key_columns
        self._labels = labels
        self._last: pa.RecordBatch | None = None

    def require_different(self, batch: pa.RecordBatch) -> None:
        """Refuse an INSERT of a key that another INSERT or an UPDATE stores, too.

        A DELETE and an INSERT of one key are fine.

        Raises:
            DataError: DUPLICATE_KEY_INSERT, with clauses and keys.
        """
        if not self._key_columns or not batch.num_rows:
            return
        checked = batch.select([rows.OPERATION, rows.CASE_NUMBER, *self._key_columns])
        if self._last is not None:
            checked = pa.concat_batches([self._last, checked])
        self._last = checked.slice(checked.num_rows - 1)
        stays = checked.column(rows.OPERATION).to_numpy() != rows.DELETE
        repeated = np.flatnonzero(self._same_key(checked) & stays[1:] & stays[:-1]) + 1
        if len(repeated):
            raise self._error(checked, repeated)

    def _same_key(self, found: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Whether each row but the first has the key of the row before."""
        same = np.ones(found.num_rows - 1, dtype=np.bool_)
        for name in self._key_columns:
            column = found.column(name)
            equal = pc.equal(column.slice(1), column.slice(0, len(column) - 1))
            same &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
        return same

    def _error(self, found: pa.RecordBatch, repeated: npt.NDArray[np.intp]) -> DataError:
        involved = np.unique(np.concatenate([repeated, repeated - 1]))
        cases = pc.unique(found.column(rows.CASE_NUMBER).take(pa.array(involved))).to_pylist()
        by = " and ".join(self._labels[case] for case in sorted(cases))
        keys = found.select(list(self._key_columns)).take(pa.array(repeated[:_NAMED_KEYS]))
        shown = "; ".join(sql_conditions(row) for row in keys.to_pylist())
        return DataError(
            ErrorCode.DUPLICATE_KEY_INSERT,
            f"{by} would store more than one row of the key {shown}",
            "Make the source unique on the key, or narrow the clause conditions.",
        )
