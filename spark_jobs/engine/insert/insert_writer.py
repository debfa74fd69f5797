"""The executor side of INSERT: checks the new rows of one task and feeds the sink.

In one pass, rows that are already in the form in which they are stored bypass the JVM: the tasks
that read a table, source files or a materialised source write the new files, so a row is decoded
once and never shuffled. This is done only if it makes hardly more files than clustering would: each
task's rows are counted by partition beforehand, and a task has few partitions.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_jobs.contract.sql_text import sql_conditions
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.engine.write.cardinality import KeyCheck
from spark_jobs.engine.write.change_counts import Placement
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport, task_sinks
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.task_batches import insert_rows, joined, row_codes
from spark_jobs.engine.write.text_check import require_text
from spark_jobs.errors import CatalogError, DataError, ErrorCode
from spark_jobs.spi.arrow_rows import ArrowRows
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.writes import beyond_years

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


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows of files that become rows of the table as they are.

    ``columns`` are the table columns that ``rows`` reads; ``cluster_by`` are those that decide
    which rows share a file. ``expected`` are the values of ``cluster_by`` known from statistics;
    None if the rows were counted. Picklable.
    """

    rows: ArrowRows
    columns: tuple[str, ...]
    cluster_by: tuple[str, ...]
    expected: frozenset[tuple[Any, ...]] | None


@dataclass(frozen=True, slots=True)
class InsertPass:
    """A function for ``mapInArrow``: takes task numbers, yields one ``TaskReport`` per task.

    ``not_null`` are the table's NOT NULL columns. ``placement``: count rows by partition.
    ``recording``: record the rows. Picklable.
    """

    copied: CopiedRows
    sinks: MergeSinkFactory
    not_null: tuple[str, ...]
    placement: Placement | None = None
    recording: Recording | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store all rows of a task.

        Yields:
            As ``InsertWriter``.
        """
        report = TaskReport()
        names = list(self.copied.columns)
        cluster_by = self.copied.cluster_by
        opened: dict[tuple[Any, ...], MergeSink] = {}
        records = self.recording.opened(task_key()) if self.recording else nullcontext()
        with task_sinks(self.sinks) as sinks, records as recorder:
            for batch in self.copied.rows.function(batches):
                named = pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)
                require_not_null(named, self.not_null)
                require_text(named, names, "INSERT")
                for key, part in by_cluster(named, cluster_by, cluster_by):
                    if key not in opened:
                        self._require_expected(key)
                        opened[key] = sinks.open(f"{task_key()}-{len(opened)}")
                    changes = insert_rows(part)
                    if recorder is not None:
                        recorder.taken(changes)
                    opened[key].store_merged_rows(changes)
                    if self.placement is not None:
                        report.counts.count(changes, self.placement)
                report.inserted += batch.num_rows
            report.fragments = sinks.finish()
        if opened:
            report.recorded = recorder.files if recorder is not None else []
            yield report.to_batch()

    def _require_expected(self, key: tuple[Any, ...]) -> None:
        expected = self.copied.expected
        if expected is not None and key not in expected:
            found = sql_conditions(dict(zip(self.copied.cluster_by, key, strict=True)))
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"The source has rows with {found}, which the statistics of its files exclude.",
                "The source's files have wrong statistics: write them again.",
            )


def by_cluster(
    batch: pa.RecordBatch, cluster_by: Sequence[str], deciding_columns: Iterable[str]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The rows of a batch, by their values in the columns ``cluster_by``.

    Errors name the ``deciding_columns``, from which these follow.

    Raises:
        DataError: VALUE_NOT_STORABLE, a day that Python does not have.
    """
    if not batch.num_rows:
        return
    columns = [batch.column(each).dictionary_encode(null_encoding="encode") for each in cluster_by]
    codes = row_codes(columns, batch.num_rows)
    for code in range(int(codes.max()) + 1):
        chosen = np.flatnonzero(codes == code)
        part = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
        try:
            key = tuple(part.column(name)[0].as_py() for name in cluster_by)
        except (ValueError, OverflowError):
            raise beyond_years(deciding_columns) from None
        yield key, part


def written(spark: SparkSession, writer: InsertPass) -> list[TaskReport]:
    """Store all rows; return the tasks' reports."""
    reports = map_tasks(spark, len(writer.copied.rows.files), writer, REPORT_SCHEMA)
    return [TaskReport.from_json(row["report"]) for row in reports.collect()]
