"""Says of each row of changed files what became of it. Executors import this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from spark_jobs.contract.sql_text import RESERVED_PREFIX
from spark_jobs.contract.table_versions import SNAPSHOT_ID

if TYPE_CHECKING:
    from spark_jobs.spi.arrow_tasks import ArrowFunction

SIGN: Final = f"{RESERVED_PREFIX}change_sign"
FILE: Final = f"{RESERVED_PREFIX}change_file"
ORDER: Final = f"{RESERVED_PREFIX}change_order"


@dataclass(frozen=True, slots=True)
class ChangeLabels:
    """An ``ArrowFunction`` that says of each row of ``function`` what became of it. Picklable.

    In place of what follows the first ``columns``: the sign of the row's file (of a changelog, the
    kind of the record), the snapshot, the file, and a number that orders the records of a key in
    their file, or 0.
    """

    function: ArrowFunction
    columns: int
    signs: np.ndarray[tuple[int], np.dtype[np.int32]]
    snapshots: np.ndarray[tuple[int], np.dtype[np.int64]]
    is_log: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tasks whose numbers are in the only column."""
        for batch in self.function(batches):
            more = batch.columns[self.columns :]
            if self.is_log:
                files, signs, order = more[0].to_numpy(), more[1], more[2]
            else:
                files = more[0].field(0).to_numpy()
                signs = pa.array(self.signs[files])
                order = pa.array(np.zeros(batch.num_rows, np.int64))
            told = [signs, pa.array(self.snapshots[files]), pa.array(files, pa.int32()), order]
            arrays = [*batch.columns[: self.columns], *told]
            names = [*batch.schema.names[: self.columns], SIGN, SNAPSHOT_ID, FILE, ORDER]
            yield pa.RecordBatch.from_arrays(arrays, names)
