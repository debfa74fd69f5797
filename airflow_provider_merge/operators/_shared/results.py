"""A job's result as XCom, as the extra of an asset event, and as a table in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlterTableReport
from spark_jobs.contract.compaction import CompactionReport
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.query import QueryReport
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ClauseMetrics, GuardReport, JobResult, Metrics, PlanReport
from spark_jobs.contract.source_names import called
from spark_jobs.contract.undo import TableUndo, UndoReport

_COUNTS = (
    "source_rows",
    "matched",
    "inserted",
    "updated",
    "deleted",
    "carried",
    "partitions_changed",
)
_REMOVED = (
    "snapshots",
    "tags",
    "data_files",
    "index_files",
    "manifests",
    "leftovers",
)
_CLEANED = ("schemas", "partition_specs")
_COMPACTED = ("rows", "vectors_removed", "indexes_lost", "changelog_files")
_READ = ("files", "bytes", "records")
_LEFT = ("left_files", "left_bytes")
_NOT_STORED = ("lost_values", "lost_records", "quarantined")
_UNDONE = ("files_removed", "files_restored", "deletes_restored", "bytes_copied")
_SHOWN_PARTITIONS = 20
_FILES = ("files_total", "files_scanned", "files_rewritten", "files_added", "files_removed")


def with_phases(
    result: JobResult, request: JobRequest, prepared: float, submitted: float
) -> JobResult:
    """The result with the seconds of this side: ``prepare``, and ``end`` behind the job's own.

    ``submitted``: seconds from the submission until the result was read. A result of an earlier
    try keeps the seconds of that one.
    """
    seconds = result.metrics.seconds
    if result.maintenance is not None or result.try_number != request.origin.try_number:
        return result
    rest = max(0.0, submitted - sum(seconds.values()))
    phases = {"prepare": round(prepared, 3), **seconds, "end": round(rest, 3)}
    return replace(result, metrics=replace(result.metrics, seconds=phases))


def xcom_value(result: JobResult) -> dict[str, Any]:
    """``operation_id``, ``status`` and ``target``, then what the statement did.

    For statements that take care of a table, the rest are the fields of ``MaintenanceReport`` or,
    for a compaction, snapshot ids, ``rounds`` and the fields of ``CompactionReport``; for ALTER
    TABLE, the fields of ``AlterTableReport``; for an undo those of ``UndoReport``, no target, and
    of a dry run the ``ticket``;
    for others
    snapshot ids, ``metrics``, ``partitions`` and ``schema_changes``, and for a dry run
    ``partition_metrics``, the ``ticket`` that can be approved, or the ``plan``, and whether rows
    were kept for the task's page, ``row_preview``.
    """
    if result.maintenance is not None:
        return {
            "operation_id": result.operation_id,
            "status": result.status,
            "target": result.target,
            **codec.encode(result.maintenance),
        }
    if result.undo is not None:
        ticket = {"ticket": codec.encode(result.ticket)} if result.status == "dry_run" else {}
        return {
            "operation_id": result.operation_id,
            "status": result.status,
            **codec.encode(result.undo),
            **ticket,
        }
    if result.alteration is not None:
        return {
            "operation_id": result.operation_id,
            "status": result.status,
            "target": result.target,
            **codec.encode(result.alteration),
        }
    if result.compaction is not None:
        return {
            "operation_id": result.operation_id,
            "status": result.status,
            "target": result.target,
            "base_snapshot_id": result.base_snapshot_id,
            "snapshot_id": result.new_snapshot_id,
            "rounds": result.metrics.attempts,
            "seconds": dict(result.metrics.seconds),
            **codec.encode(result.compaction),
        }
    value = {
        "operation_id": result.operation_id,
        "status": result.status,
        "target": result.target,
        "base_snapshot_id": result.base_snapshot_id,
        "snapshot_id": result.new_snapshot_id,
        "metrics": codec.encode(result.metrics),
        "partitions": list(result.partitions),
        "schema_changes": list(result.schema_changes),
    }
    if result.is_dry:
        value["partition_metrics"] = codec.encode(result.partition_metrics)
        value["ticket"] = codec.encode(result.ticket)
        value["plan"] = codec.encode(result.plan)
        # Not the rows: who may read XComs need not be one who may see rows.
        value["row_preview"] = result.row_preview
    return value


def query_value(operation_id: str, report: QueryReport) -> dict[str, Any]:
    """The fields of ``QueryReport``, with ``operation_id``."""
    return {"operation_id": operation_id, **codec.encode(report)}


def query_line(report: QueryReport, seconds: float) -> str:
    """What a query found, for the task's log; no values."""
    place = f" in {report.location}" if report.location else ""
    more = ", and there are more" if report.truncated else ""
    return f"{report.row_count:,} rows{place}{more}; {seconds:.1f} seconds"


def asset_extra(operation: str, result: JobResult) -> dict[str, Any]:
    """What a consumer of the asset event learns: the same, with the row counts at the top.

    ``operation`` is the kind of the statement, such as ``merge``. ``sources`` are the fields of
    ``SourceMetrics`` by the name of the file source, ``guards`` those of ``GuardReport``; they and
    ``schema_changes`` are only there where the statement has any.
    """
    metrics = result.metrics
    extra = {
        "operation": operation,
        "operation_id": result.operation_id,
        "status": result.status,
        "table": result.target,
        "base_snapshot_id": result.base_snapshot_id,
        "snapshot_id": result.new_snapshot_id,
        "inserted": metrics.inserted,
        "updated": metrics.updated,
        "deleted": metrics.deleted,
        "partitions_changed": metrics.partitions_changed,
        "partitions": list(result.partitions),
    }
    if metrics.guards:
        extra["guards"] = codec.encode(metrics.guards)
    if metrics.sources:
        extra["sources"] = codec.encode(metrics.sources)
    if result.schema_changes:
        extra["schema_changes"] = list(result.schema_changes)
    return extra


def result_table(result: JobResult) -> str:
    """A few aligned lines for the task's log."""
    reports: dict[str, Callable[[JobResult, Any], str]] = {
        "maintenance": _maintenance_table,
        "compaction": _compaction_table,
        "alteration": _alteration_table,
        "plan": _plan_table,
        "undo": _undo_table,
    }
    for name, table in reports.items():
        if (report := getattr(result, name)) is not None:
            return table(result, report)
    if result.dropped or result.made_table:
        done = "dropped" if result.dropped else "created"
        return "\n".join([f"{result.target}: {done}", *_seconds(result.metrics)])
    snapshot = "none" if result.new_snapshot_id is None else str(result.new_snapshot_id)
    lines = [f"{result.target}: {result.status}, snapshot {snapshot}{_attempts(result.metrics)}"]
    for names in (_COUNTS, _FILES):
        lines.append("  " + _cells(result.metrics, names))
    metrics = result.metrics
    if metrics.clauses:
        lines.append("  clauses: " + " | ".join(map(_clause, metrics.clauses)))
    lines += _source_lines(metrics)
    lines += map(_guard_line, metrics.guards)
    if metrics.publish_attempts > 1 or metrics.snapshots_met:
        lines.append(
            f"  published in try {metrics.publish_attempts:,}, behind "
            f"{metrics.snapshots_met:,} snapshots of others"
        )
    if result.partitions:
        lines.append("  partitions: " + " | ".join(result.partitions))
    if result.schema_changes:
        schema = "schema would change" if result.is_dry else "schema"
        lines.append(f"  {schema}: " + " | ".join(result.schema_changes))
    return "\n".join([*lines, *_seconds(result.metrics)])


def _plan_table(result: JobResult, plan: PlanReport) -> str:
    """What a statement would do at most."""
    lines = [
        f"{result.target}: planned, nothing was written; at most:",
        "  " + _cells(plan, ("inserted", "updated", "deleted")),
        "  " + _cells(plan, ("files_rewritten", "bytes_rewritten", "files_removed")),
        "  " + _cells(result.metrics, ("source_rows", "files_total")),
        *map(_guard_line, result.metrics.guards),
    ]
    return "\n".join([*lines, *_seconds(result.metrics)])


def _guard_line(guard: GuardReport) -> str:
    place = f" in partition {guard.partition}" if guard.partition else ""
    verdict = "holds" if guard.held else "DOES NOT HOLD"
    return f"  guard {guard.name} = {guard.limit} {verdict}: {guard.seen}{place}"


def _attempts(metrics: Metrics) -> str:
    """How often the statement was run, where others were in the way."""
    return f", in attempt {metrics.attempts:,}" if metrics.attempts > 1 else ""


def _clause(clause: ClauseMetrics) -> str:
    return f"{clause.when.replace('_', ' ')}, {clause.action} {clause.rows:,}"


def _seconds(metrics: Metrics) -> list[str]:
    seconds = [f"{phase} {value:.1f}" for phase, value in metrics.seconds.items()]
    return ["  seconds: " + " | ".join(seconds)] if seconds else []


def _source_lines(metrics: Metrics) -> list[str]:
    """What was read of each file source and, where there is any, what the table did not get."""
    lines = []
    for name, source in metrics.sources.items():
        read = [each for each in _READ if getattr(source, each) is not None]
        read += _LEFT if source.left_files else ()
        read += ("skipped_events",) if source.skipped_events else ()
        lines.append(f"  {called(name)}: {_cells(source, read)}")
        not_stored = [each for each in _NOT_STORED if getattr(source, each)]
        if not_stored:
            place = f", in {source.quarantine}" if source.quarantine else ""
            lines.append(f"  {called(name)}, not stored: {_cells(source, not_stored)}{place}")
    return lines


def _cells(counts: object, names: Sequence[str]) -> str:
    return " | ".join(f"{name.replace('_', ' ')} {getattr(counts, name):,}" for name in names)


def _maintenance_table(result: JobResult, report: MaintenanceReport) -> str:
    is_dry = result.is_dry
    removed = f"{_cells(report, _REMOVED)} | bytes {report.bytes_removed:,}"
    cleaned = [each for each in _CLEANED if getattr(report, each)]
    if cleaned:
        removed += f" | {_cells(report, cleaned)}"
    done = "would remove" if is_dry else "removed"
    lines = [f"{result.target}: {result.status}", f"  {done}: {removed}"]
    kept = "would be kept" if is_dry else "kept"
    lines += [
        f"  {kept} for {each.by}: {each.snapshots:,} snapshots, {each.files:,} data files"
        for each in report.kept
    ]
    if report.snapshots_left:
        left = "would be left" if is_dry else "left"
        lines.append(f"  {left} because of max_deletes: {report.snapshots_left:,} snapshots")
    if report.earliest_snapshot_id is not None:
        then = "snapshots afterwards:" if is_dry else "snapshots"
        lines.append(f"  {then} {report.earliest_snapshot_id} to {report.latest_snapshot_id}")
    return "\n".join(lines)


def _undo_table(result: JobResult, report: UndoReport) -> str:
    lines = [f"undo: {result.status}"]
    for table in report.tables:
        snapshot = "" if table.snapshot_id is None else f", snapshot {table.snapshot_id}"
        lines.append(f"  {table.table}: {table.outcome}{snapshot}{_why(table)}")
        if table.commits:
            lines.append(
                f"    rows that go {table.inserted:,} | come back {table.deleted:,} | get former "
                f"values {table.updated:,}; {_cells(table, _UNDONE)}"
            )
        lines += [
            f"    snapshot {commit.snapshot_id}: {commit.statement} of task {commit.task_id}, "
            f"operation {commit.operation_id}"
            for commit in table.commits[:_SHOWN_PARTITIONS]
        ]
        if table.oldest is not None:
            lines.append(f"    snapshots before {table.oldest} have expired")
    return "\n".join([*lines, *_seconds(result.metrics)])


def _why(table: TableUndo) -> str:
    return f", {table.reason}" if table.reason else ""


def _alteration_table(result: JobResult, report: AlterTableReport) -> str:
    verb = "would change" if result.is_dry else "changed"
    lines = [f"{result.target}: {result.status}"]
    lines += [
        f"  {verb} {each.what}: {_part(each.before)} -> {_part(each.after)}"
        for each in report.parts
    ]
    if report.omitted:
        lines.append(f"  {verb} more: {report.omitted:,}")
    return "\n".join([*lines, *_seconds(result.metrics)])


def _part(text: str | None) -> str:
    return text if text else "none"


def _compaction_table(result: JobResult, report: CompactionReport) -> str:
    is_dry = result.is_dry
    snapshots = ", ".join(map(str, report.snapshots)) or "none"
    rounds = f", in {result.metrics.attempts:,} rounds" if result.metrics.attempts > 1 else ""
    lines = [f"{result.target}: {result.status}, snapshots {snapshots}{rounds}"]
    verb = "would become about" if is_dry else "became"
    lines.append(
        f"  partitions {report.partitions_compacted:,}: {report.files_before:,} files of "
        f"{report.bytes_before:,} bytes {verb} {report.files_after:,} of {report.bytes_after:,}"
    )
    lines.append("  " + _cells(report, _COMPACTED))
    if report.manifests_before:
        lines.append(
            f"  manifests: {report.manifests_before:,} {verb} {report.manifests_after:,}, without "
            f"{report.deletes_removed:,} delete files that applied to nothing"
        )
    if report.partitions_left:
        left = f"{report.partitions_left:,} {'would be left' if is_dry else 'left'}"
        lines.append(f"  partitions beyond the limits of the run: {left}")
    lines += [
        f"  {partition_name(partition.values) or 'the table'}: {partition.files_before:,} files of "
        f"{partition.bytes_before:,} bytes -> {partition.files_after:,} of "
        f"{partition.bytes_after:,}"
        for partition in report.partitions[:_SHOWN_PARTITIONS]
    ]
    more = report.partitions_compacted - _SHOWN_PARTITIONS
    if more > 0:
        lines.append(f"  more partitions: {more:,}")
    return "\n".join([*lines, *_seconds(result.metrics)])
