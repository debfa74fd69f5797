"""Refuses rows of equal keys among the changes of one task. Imported by executors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contract.sql_literals import sql_conditions
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows

_NAMED_KEYS = 3


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
