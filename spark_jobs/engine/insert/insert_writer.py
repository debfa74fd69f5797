"""The executor side of INSERT: checks the new rows of one task and feeds the sink.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.cardinality import KeyCheck
from spark_jobs.engine.write.change_counts import Placement
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.task_batches import insert_rows, joined
from spark_jobs.engine.write.task_sinks import task_sinks
from spark_jobs.engine.write.text_check import require_text
from spark_jobs.errors import DataError, ErrorCode

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory


@dataclass(frozen=True, slots=True)
class InsertWriter:
    """A function for ``mapInArrow``: takes new rows, yields one ``TaskReport``. Picklable.

    ``not_null`` are the table's NOT NULL columns; ``columns`` are the names of the incoming
    columns. No two rows may have the same values in ``different_keys``, by which they are sorted;
    if it is empty, all may. ``placement``: count rows by partition. ``recording``: record the rows.
    """

    sinks: MergeSinkFactory
    not_null: tuple[str, ...]
    columns: tuple[str, ...]
    different_keys: tuple[str, ...] = ()
    placement: Placement | None = None
    recording: Recording | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store all rows of a task.

        Yields:
            One row with the column ``report`` (string): a ``TaskReport`` as JSON. Nothing for a
            task without rows.
        """
        report = TaskReport()
        sink: MergeSink | None = None
        records = self.recording.opened(task_key()) if self.recording else nullcontext()
        with task_sinks(self.sinks) as sinks, records as recorder:
            for batch in joined(batches):
                if sink is None:
                    sink = sinks.open(task_key())
                    keys = KeyCheck(self.different_keys, ("INSERT",))
                named = batch.rename_columns(list(self.columns))
                require_not_null(named, self.not_null)
                require_text(named, self.columns, "INSERT")
                changes = insert_rows(named)
                if recorder is not None:
                    recorder.taken(changes)
                keys.require_different(changes)
                sink.store_merged_rows(changes)
                report.inserted += batch.num_rows
                if self.placement is not None:
                    report.counts.count(changes, self.placement)
            report.fragments = sinks.finish()
        if sink is not None:
            report.recorded = recorder.files if recorder is not None else []
            yield report.to_batch()


def require_not_null(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    """Refuse NULL in the columns ``names``.

    Raises:
        DataError: NOT_NULL_VIOLATION, naming the column.
    """
    for name in names:
        if batch.column(name).null_count:
            raise DataError(
                ErrorCode.NOT_NULL_VIOLATION,
                f"column {name} is NOT NULL, but INSERT would store NULL",
                "Give it a value, or filter such rows out.",
            )
