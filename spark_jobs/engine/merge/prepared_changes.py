"""A task of the prepared pass: reads target rows, and stores what was prepared for their matches.

Nothing is evaluated and no row goes through the JVM. Imported by executors: nothing here needs a
table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_jobs.engine.merge.located_writer import LocatedWriter
from spark_jobs.engine.merge.lookup_join import LookupJoin
from spark_jobs.engine.write.recorder import OLD_ROW
from spark_jobs.spi import rows


@dataclass(frozen=True, slots=True)
class PreparedChanges:
    """A function for ``map_tasks``: changes the files of each task. Picklable.

    ``join`` yields exactly the pairs that ON joins; it reads nothing of the target but the columns
    ``target``: its keys, and the ``recorded`` ones. Its source rows are change rows without row
    ids: operation, case number and assigned columns.
    """

    join: LookupJoin
    target: tuple[str, ...]
    recorded: tuple[str, ...]
    writer: LocatedWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change the files of the tasks whose numbers are in the only column.

        Yields:
            As ``LocatedWriter``.
        """
        yield from self.writer(self._change_rows(batches))

    def _change_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = list(self.writer.writer.columns)
        places = [self.target.index(name) for name in self.recorded]
        for pairs in self.join(batches):
            row_id, operation, case_number, *values = pairs.columns[len(self.target) :]
            whole = pa.array(np.zeros(pairs.num_rows, np.bool_))
            arrays = [operation, case_number, row_id, whole, *values]
            if places:
                old = [pairs.column(place) for place in places]
                arrays.append(pa.StructArray.from_arrays(old, list(self.recorded)))
            yield pa.RecordBatch.from_arrays(arrays, columns)


def columns_of(assigned: Iterable[str], *, records: bool = False) -> tuple[str, ...]:
    """The columns of the change rows, the last of which are ``assigned``, and then the old row."""
    columns = (rows.OPERATION, rows.CASE_NUMBER, rows.ROW_ID, rows.FROM_UPDATE, *assigned)
    return (*columns, OLD_ROW) if records else columns
