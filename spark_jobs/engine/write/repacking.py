"""Stores the rows of small new files again, in fewer files.

A task of a statement stores the new versions of the rows that it updates, if the connector appends
them. How many there are is known only afterwards. Imported by executors: nothing here needs a table
library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport, task_sinks
from spark_jobs.engine.write.task_batches import insert_rows
from spark_jobs.packing import scan_tasks
from spark_jobs.spi.arrow_tasks import ScanTasks, map_tasks
from spark_jobs.spi.writes import Fragment, Repacking

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import ConnectorMergeWrites
    from spark_jobs.spi.sinks import MergeHandle, MergeSinkFactory
    from spark_jobs.spi.tables import TableHandle

_TASKS_PER_CORE = 2


def repacked(
    spark: SparkSession,
    writes: ConnectorMergeWrites,
    table: TableHandle,
    handle: MergeHandle,
    reports: Sequence[TaskReport],
    *,
    dry_run: bool,
) -> list[TaskReport]:
    """``reports``, with fewer new files if the connector finds them too many.

    A dry run, which has no files, expects one file of the same size for each group of files.
    """
    fragments = [fragment for report in reports for fragment in report.fragments]
    plan = writes.repacking(table, handle, fragments)
    if plan is None:
        return list(reports)
    replaced = {index for group in plan.groups for index in group}
    kept_fragments = [each for index, each in enumerate(fragments) if index not in replaced]
    if dry_run:
        kept_fragments += [_as_one([fragments[index] for index in group]) for group in plan.groups]
        written = []
    else:
        written = _stored_again(spark, handle.sinks, plan, fragments)
        writes.discard(handle, [fragments[index] for index in sorted(replaced)])
    counts = [replace(report, fragments=[]) for report in reports]
    return [*counts, TaskReport(fragments=kept_fragments), *written]


def _stored_again(
    spark: SparkSession,
    sinks: MergeSinkFactory,
    plan: Repacking,
    fragments: Sequence[Fragment],
) -> list[TaskReport]:
    sizes = {
        number: sum(fragments[index].bytes_added for index in group)
        for number, group in enumerate(plan.groups)
    }
    most = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    tasks = tuple(
        tuple(plan.parts[index] for number in numbers for index in plan.groups[number])
        for numbers in scan_tasks(sizes, most)
    )
    repacker = Repacker(sinks, ScanTasks(plan.reader, tasks))
    written = map_tasks(spark, len(tasks), repacker, REPORT_SCHEMA).collect()
    return [TaskReport.from_json(row["report"]) for row in written]


def _as_one(fragments: Sequence[Fragment]) -> Fragment:
    size = sum(each.bytes_added for each in fragments)
    return replace(fragments[0], bytes_added=size)


@dataclass(frozen=True, slots=True)
class Repacker:
    """A function for ``map_tasks``: stores the rows of its files, yields a report. Picklable."""

    sinks: MergeSinkFactory
    rows: ScanTasks[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store the rows of the files of one task.

        Yields:
            One ``TaskReport``, which counts no rows.
        """
        with task_sinks(self.sinks) as sinks:
            sink = sinks.open(task_key())
            for batch in self.rows(batches):
                sink.store_merged_rows(insert_rows(batch))
            report = TaskReport(fragments=sinks.finish())
        yield report.to_batch()
