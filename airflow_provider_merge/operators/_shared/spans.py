"""The phases of a statement as spans below the task's own, where Airflow traces its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult

if TYPE_CHECKING:
    from spark_jobs.contract.result import TimedPhase

_TRACER: Final = "airflow_provider_merge"
_NANOS: Final = 1_000_000_000


def record_spans(request: JobRequest, result: JobResult) -> None:
    """Add a span for a statement of this try, and one below it for each phase of its job.

    Nothing is done without OpenTelemetry, or if the task is not traced.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        return
    if not result.phases or not trace.get_current_span().is_recording():
        return
    if result.try_number != request.origin.try_number:
        return
    tracer = trace.get_tracer(_TRACER)
    began = min(each.began for each in result.phases)
    ended = max(each.began + each.seconds for each in result.phases)
    span = tracer.start_span(
        f"merge.{request.statement.kind}",
        start_time=_nanos(began),
        attributes=_attributes(request, result),
    )
    if result.error is not None:
        span.set_status(trace.Status(trace.StatusCode.ERROR, result.error.code))
    below = trace.set_span_in_context(span)
    for job_phase in result.phases:
        name = f"merge.phase.{job_phase.name}"
        phase = tracer.start_span(name, below, start_time=_nanos(job_phase.began))
        phase.end(_nanos(_end(job_phase)))
    span.end(_nanos(ended))


def _attributes(request: JobRequest, result: JobResult) -> Mapping[str, str | int]:
    """Names and counts; nothing of the statement's text."""
    metrics = result.metrics
    return {
        "merge.kind": request.statement.kind,
        "merge.format": request.catalog.connector,
        "merge.table": str(request.target or ""),
        "merge.operation_id": request.operation_id,
        "merge.status": result.status,
        "merge.code": result.error.code if result.error else "",
        "merge.snapshot_id": str(result.new_snapshot_id or ""),
        "merge.attempts": metrics.attempts,
        "merge.rows.inserted": metrics.inserted,
        "merge.rows.updated": metrics.updated,
        "merge.rows.deleted": metrics.deleted,
    }


def _end(phase: TimedPhase) -> float:
    return phase.began + phase.seconds


def _nanos(seconds: float) -> int:
    return int(seconds * _NANOS)
