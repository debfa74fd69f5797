"""Which INSERTs stream: the tasks of the source's query write the table's files. Driver only.

The rows of a query are evaluated once. If something must know them before the first file is
written, that evaluation goes into files of the workspace (``source.materialized``), from which they
are copied. If nothing does, its tasks hand their rows to sinks: no row is stored twice. A task that
is tried again, or runs twice, writes files with names of its own; only those that successful tasks
reported are published, so that a query with ``rand()`` has one result, as in the workspace.

Small files of many tasks are joined afterwards (``ConnectorMergeWrites.repacking``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.operation_files import new_source_folder
from spark_jobs.engine.insert.partition_shares import Partition, partition_of
from spark_jobs.engine.insert.streamed_rows import StreamedInsert, StreamedReport
from spark_jobs.engine.runtime.arrow_batches import batches_of_short_rows
from spark_jobs.engine.runtime.lease import LeasedTask
from spark_jobs.engine.source.materialized import spilled_frame
from spark_jobs.engine.write.change_writer import REPORT_SCHEMA, TaskReport
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.storage.files import make_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.engine.insert.inserted_rows import AnalyzedInsert
    from spark_jobs.engine.insert.replacement import Replacement
    from spark_jobs.engine.write.statement_run import SparkRun
    from spark_jobs.spi.connector import Connector
    from spark_jobs.spi.sinks import MergeHandle
    from spark_jobs.spi.tables import PlannedFile, TableHandle
    from spark_jobs.spi.writes import WriteLayout


def why_not_streamed(
    run: SparkRun[Any],
    insert: AnalyzedInsert,
    replacement: Replacement,
    layout: WriteLayout,
    planned: Sequence[PlannedFile],
) -> str | None:
    """Why new rows have to be known before they are written; None: they stream.

    ``planned`` are the target's files. Whatever needs rows, or their number or partitions, before
    the first file is written is a reason; what needs them before the commit is none, such as rows
    outside of the statement's partition.
    """
    if run.dry_run or run.plan_only or run.approved is not None:
        return "a dry run, or an approved run"
    if run.guards != Guards():
        return "guards, checks, an audit or a quarantine"
    if isinstance(run.spec, InsertOverwriteSpec) and run.spec.expected_partitions is not None:
        return "expected_partitions"
    if insert.order_by or not layout.joins_files:
        return "rows are sorted, or belong to buckets"
    fields = [each.name for each in run.table.partitioned_by]
    if not replacement.appends and any(partition_of(each, fields) is None for each in planned):
        return "files whose partition is not known"
    return None


@dataclass(frozen=True, slots=True)
class Streamed:
    """What was stored, and the frame of the rows that were left over; None: none were.

    ``spilled_bytes`` is their size as Arrow.
    """

    reports: list[TaskReport]
    rest: DataFrame | None
    spilled_bytes: int


def streamed(
    run: SparkRun[Any],
    rows: DataFrame,
    handle: MergeHandle,
    layout: WriteLayout,
    row_bytes: float,
) -> Streamed:
    """Evaluate ``rows``, and store them in new files of ``handle``.

    ``row_bytes`` is about the size of a row in data files, 0 if it is not known.

    Raises:
        DataError: a row cannot be stored; ROWS_TOO_LONG as ``batches_of_short_rows``.
        CommitError: RUN_GIVEN_UP.
    """
    storage, folder = run.connector.storage, new_source_folder(run.scratch)
    place = f"{storage.root}/{folder}"
    make_folder(storage.filesystem, place)
    columns = tuple(rows.columns)
    writer = StreamedInsert(
        handle.sinks, layout, run.required_columns, columns, storage.filesystem, place
    )
    task = LeasedTask(writer, run.lease, place)
    with batches_of_short_rows(by_position(rows), row_bytes) as placed:
        found = map_in_arrow(placed, task, REPORT_SCHEMA).collect()
    reports = [StreamedReport.from_json(row["report"]) for row in found]
    spilled = [each.spilled for each in reports if each.spilled is not None]
    rest = None
    if spilled:
        stored_names = {name: f"c{number}" for number, name in enumerate(columns)}
        names = [f"{folder}/{each.name}" for each in spilled]
        rest = spilled_frame(run.spark, storage, names, rows.schema.fields, stored_names)
    size = sum(each.byte_size for each in spilled)
    return Streamed([each.stored for each in reports], rest, size)


def stored_partitions(
    connector: Connector, table: TableHandle, reports: Sequence[TaskReport]
) -> list[Partition]:
    """The distinct partitions of the files that tasks stored."""
    fragments = [each for report in reports for each in report.fragments]
    fields = [each.name for each in table.partitioned_by]
    found = connector.writes.changed_partitions(table, fragments)
    return list(dict.fromkeys(tuple(each[name] for name in fields) for each in found))
