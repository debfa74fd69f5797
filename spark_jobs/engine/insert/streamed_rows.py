"""The executor side of a streamed INSERT: the tasks that compute rows store them at once.

A task keeps a file open for each of the first few partitions that it meets. Rows of further ones
it spills, in a file of the workspace: they are distributed afterwards, partition by partition.
Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.engine.insert.insert_pass import by_cluster
from spark_jobs.engine.insert.insert_writer import change_rows, require_not_null
from spark_jobs.engine.insert.task_clusters import MOST_CLUSTERS
from spark_jobs.engine.runtime.spill import Spill, SpilledFile
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.change_writer import TaskReport
from spark_jobs.engine.write.joined_batches import joined
from spark_jobs.engine.write.task_sinks import TaskSinks, task_sinks
from spark_jobs.engine.write.text_check import require_text

if TYPE_CHECKING:
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
    from spark_jobs.spi.writes import WriteLayout


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
        opened: dict[tuple[Any, ...], MergeSink] = {}
        with task_sinks(self.sinks) as sinks, spill:
            for batch in joined(batches):
                report.stored.inserted += self._taken(batch, sinks, opened, spill)
            report.stored.fragments = sinks.finish()
        if spill.row_count:
            report.spilled = SpilledFile(name, spill.row_count, spill.byte_size)
        yield report.to_batch()

    def _taken(
        self,
        batch: pa.RecordBatch,
        sinks: TaskSinks,
        opened: dict[tuple[Any, ...], MergeSink],
        spill: Spill,
    ) -> int:
        """Check rows, and store or spill them; returns how many were stored."""
        named, stored = batch.rename_columns(list(self.columns)), 0
        require_not_null(named, self.not_null)
        require_text(named, self.columns, "INSERT")
        derived = self.layout.derived
        placed = named if derived is None else derived.added_to(named)
        for key, part in by_cluster(placed, self.layout.cluster_by):
            if key not in opened:
                if len(opened) >= self.most_open:
                    rest = part.columns[: len(self.columns)]
                    spill.add(pa.RecordBatch.from_arrays(rest, schema=batch.schema))
                    continue
                opened[key] = sinks.open(f"{task_key()}-{len(opened)}")
            opened[key].store_merged_rows(change_rows(part))
            stored += part.num_rows
        return stored
