"""A task that stores source rows as new rows of the table, as they are.

Nothing is evaluated and no row goes through the JVM. Imported by executors: nothing here needs a
table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_jobs.engine.write.change_writer import ChangeWriter
from spark_jobs.engine.write.task_batches import insert_rows
from spark_jobs.spi import rows
from spark_jobs.spi.arrow_tasks import ScanTasks


@dataclass(frozen=True, slots=True)
class CopiedInserts:
    """A function for ``map_tasks``: stores source rows as new rows of the table. Picklable.

    ``source`` reads them; ``places`` are those of its columns that the table's ``columns`` get, by
    the NOT MATCHED clause with ``case_number``.
    """

    source: ScanTasks[tuple[int, int]]
    places: tuple[int, ...]
    columns: tuple[str, ...]
    case_number: int
    row_id: pa.DataType
    writer: ChangeWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store the rows of the tasks whose numbers are in the only column.

        Yields:
            As ``ChangeWriter``.
        """
        names = (rows.OPERATION, rows.CASE_NUMBER, rows.ROW_ID, rows.FROM_UPDATE, *self.columns)
        yield from replace(self.writer, columns=names)(map(self._change_rows, self.source(batches)))

    def _change_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen = [batch.column(place) for place in self.places]
        copied = pa.RecordBatch.from_arrays(chosen, list(self.columns))
        return insert_rows(copied, self.case_number, self.row_id)
