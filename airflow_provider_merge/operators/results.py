"""A job's result as XCom, as the extra of an asset event, and as a table in the log."""

from __future__ import annotations

from typing import Any

from spark_jobs.contract import codec
from spark_jobs.contract.result import JobResult

_COUNTS = ("source_rows", "matched", "inserted", "updated", "deleted", "carried")
_FILES = ("files_total", "files_scanned", "files_rewritten", "files_added", "files_removed")


def xcom_value(result: JobResult) -> dict[str, Any]:
    """``operation_id``, ``status``, ``target``, both snapshot ids and ``metrics``."""
    return {
        "operation_id": result.operation_id,
        "status": result.status,
        "target": result.target,
        "base_snapshot_id": result.base_snapshot_id,
        "snapshot_id": result.new_snapshot_id,
        "metrics": codec.encode(result.metrics),
    }


def asset_extra(result: JobResult) -> dict[str, Any]:
    """What a consumer of the asset event learns: the same, with the row counts at the top."""
    metrics = result.metrics
    return {
        "operation_id": result.operation_id,
        "status": result.status,
        "table": result.target,
        "base_snapshot_id": result.base_snapshot_id,
        "snapshot_id": result.new_snapshot_id,
        "inserted": metrics.inserted,
        "updated": metrics.updated,
        "deleted": metrics.deleted,
    }


def result_table(result: JobResult) -> str:
    """A few aligned lines for the task's log."""
    snapshot = "none" if result.new_snapshot_id is None else str(result.new_snapshot_id)
    lines = [f"{result.target}: {result.status}, snapshot {snapshot}"]
    for names in (_COUNTS, _FILES):
        cells = [f"{name.replace('_', ' ')} {getattr(result.metrics, name):,}" for name in names]
        lines.append("  " + " | ".join(cells))
    seconds = [f"{phase} {value:.1f}" for phase, value in result.metrics.seconds.items()]
    if seconds:
        lines.append("  seconds: " + " | ".join(seconds))
    return "\n".join(lines)
