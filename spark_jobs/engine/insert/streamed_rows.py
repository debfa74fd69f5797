"""The executor side of a streamed INSERT: the tasks that compute rows store them at once.

A task has a file open for each of a few partitions. It ends the file of one that got no rows for a
while when it meets another partition. If all of them get rows, it spills those of further ones, in
a file of the workspace: they are distributed afterwards, partition by partition.
Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.engine.insert.insert_writer import by_cluster, require_not_null
from spark_jobs.engine.insert.task_clusters import MOST_CLUSTERS
from spark_jobs.engine.runtime.spill import Spill, SpilledFile
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.change_writer import TaskReport, TaskSinks, task_sinks
from spark_jobs.engine.write.task_batches import insert_rows, joined
from spark_jobs.engine.write.text_check import require_text

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
    from spark_jobs.spi.writes import WriteLayout


# A partition without rows in so many batches has probably got all of its rows.
_IDLE_AFTER = 4


@dataclass(slots=True)
class StreamedReport:
    """What one task stored, and the file with the rows that it left over; None: it left none."""

    stored: TaskReport = field(default_factory=TaskReport)
    spilled: SpilledFile | None = None

    def to_batch(self) -> pa.RecordBatch:
        """One row with the column ``report`` (string), as ``REPORT_SCHEMA``."""
        document = {"stored": self.stored.to_json(), "spilled": self.spilled}
        return pa.RecordBatch.from_pydict({"report": [json.dumps(document)]})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The report from the JSON text in a batch."""
        document = json.loads(text)
        spilled = document["spilled"]
        stored = TaskReport.from_json(document["stored"])
        return cls(stored, None if spilled is None else SpilledFile(*spilled))


@dataclass(frozen=True, slots=True)
class StreamedInsert:
    """A function for ``mapInArrow``: takes new rows, yields a ``StreamedReport``. Picklable.

    ``columns`` are the names of the incoming columns, in their order; ``not_null`` are NOT NULL.
    ``folder`` in ``filesystem`` is for rows that are left over, which have the columns ``c0``,
    ``c1`` … ``most_open`` is the number of partitions of which a task stores rows at once.
    """

    sinks: MergeSinkFactory
    layout: WriteLayout
    not_null: tuple[str, ...]
    columns: tuple[str, ...]
    filesystem: pafs.FileSystem
    folder: str
    most_open: int = MOST_CLUSTERS

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store or spill all rows of a task.

        Yields:
            One row with the column ``report`` (string): a ``StreamedReport`` as JSON.
        """
        report, name = StreamedReport(), f"{task_key()}.parquet"
        spill = Spill(self.filesystem, f"{self.folder}/{name}")
        with task_sinks(self.sinks) as sinks, spill:
            opened = _OpenPartitions(sinks, self.most_open)
            for batch in joined(batches):
                report.stored.inserted += self._taken(batch, opened, spill)
            report.stored.fragments = sinks.finish()
        if spill.row_count:
            report.spilled = SpilledFile(name, spill.row_count, spill.byte_size)
        yield report.to_batch()

    def _taken(self, batch: pa.RecordBatch, opened: _OpenPartitions, spill: Spill) -> int:
        """Check rows, and store or spill them; returns how many were stored."""
        named, stored = batch.rename_columns(list(self.columns)), 0
        require_not_null(named, self.not_null)
        require_text(named, self.columns, "INSERT")
        derived = self.layout.derived
        placed = named if derived is None else derived.added_to(named)
        opened.batch_number += 1
        layout = self.layout
        for key, part in by_cluster(placed, layout.cluster_by, layout.deciding_columns):
            sink = opened.sink(key)
            if sink is None:
                rest = part.columns[: len(self.columns)]
                spill.add(pa.RecordBatch.from_arrays(rest, schema=batch.schema))
            else:
                sink.store_merged_rows(insert_rows(part))
                stored += part.num_rows
        return stored


@dataclass(slots=True)
class _OpenPartitions:
    """The sinks of at most ``most`` partitions, by the values of their fields."""

    sinks: TaskSinks
    most: int
    batch_number: int = 0
    by_key: dict[tuple[Any, ...], MergeSink] = field(default_factory=dict)
    last_used: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def sink(self, key: tuple[Any, ...]) -> MergeSink | None:
        """That of a partition, perhaps a new one; None: all the others get rows as well."""
        if key not in self.by_key:
            if len(self.by_key) >= self.most and not self._end_an_idle_one():
                return None
            self.by_key[key] = self.sinks.open(f"{task_key()}-{len(self.sinks.opened)}")
        self.last_used[key] = self.batch_number
        return self.by_key[key]

    def _end_an_idle_one(self) -> bool:
        idle = min(self.by_key, key=self.last_used.__getitem__)
        if self.batch_number - self.last_used[idle] < _IDLE_AFTER:
            return False
        self.sinks.finish_early(self.by_key.pop(idle))
        return True
