"""Reads the files that a statement replaces in part, and deletes the rows that go. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_jobs.engine.insert.replaced_rows import (
    ReplacedPartitions,
    ReplacedReport,
    ReplacedRows,
)
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA
from spark_jobs.engine.write.partition_counts import placement
from spark_jobs.engine.write.recorder import Recording
from spark_jobs.engine.write.statement_run import StatementRun
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_replaced(
    run: StatementRun[Any],
    spark: SparkSession | None,
    handle: MergeHandle,
    partitions: ReplacedPartitions,
    files: Sequence[PlannedFile],
    recording: Recording | None = None,
) -> list[ReplacedReport]:
    """Delete the rows of ``partitions`` in ``files``, and record them; nothing is published.

    Without a session, this process reads the files, one after another.

    Raises:
        DataError: PARTITION_NOT_EXPECTED.
        NotSupportedError: the rows of the table tell no partitions; the message names a file.
    """
    if not files:
        return []
    metadata, table = run.connector.metadata, run.table
    layout = metadata.insert_layout(table)
    names = () if layout.derived is None else layout.derived.inputs
    recorded = recording.old if recording else ()
    names = (*names, *(name for name in recorded if name not in names))
    read = run.connector.scan.arrow_rows(spark, table, files, names)
    if read is None or layout.derived is None:
        raise NotSupportedError(
            f"{table.name} has files whose partition is not known, such as {files[0].path}.",
            "Rewrite older files by the table's partitions of today, or replace the whole table.",
        )
    run.progress.say(f"{len(files)} files of older partitions to read")
    placed = placement(table, metadata.update_layout(table), layout) if run.dry_run else None
    function = ReplacedRows(
        read, layout.derived, partitions, handle.sinks, placed, names, recording
    )
    if spark is None:
        return [function.stored([_numbers(len(read.files))], lambda: "0")]
    reports = map_tasks(spark, len(read.files), function, REPORT_SCHEMA)
    return [ReplacedReport.from_json(row["report"]) for row in reports.collect()]


def _numbers(tasks: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(range(tasks), pa.int64())})
