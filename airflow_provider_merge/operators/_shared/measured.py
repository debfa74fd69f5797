"""What a task's statements did, as metrics and spans: one place for all operators."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_merge import metrics
from airflow_provider_merge.metrics import Metric, Sample
from airflow_provider_merge.operators._shared.spans import record_spans
from airflow_provider_merge.task_failures import TaskFailure
from spark_jobs.contract.compaction import CompactionReport
from spark_jobs.contract.maintenance import MaintenanceReport
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.errors import ErrorCode

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator

log = logging.getLogger(__name__)

# Beside those of errors.
TIMED_OUT = "TIMED_OUT"
TASK_ENDED = "TASK_ENDED"
_UNKNOWN = {"kind": "unknown", "format": "unknown"}

_Operator = TypeVar("_Operator", bound="SparkJobOperator")


class Measured:
    """The statements of one run of a task, and what they left."""

    def __init__(self) -> None:
        self._requests: dict[str, JobRequest] = {}
        self._results: dict[str, JobResult] = {}

    def expect(self, *requests: JobRequest) -> None:
        """The task is to run these statements."""
        self._requests |= {each.operation_id: each for each in requests}

    def left(self, request: JobRequest, result: JobResult) -> None:
        """A statement left its result, which may be a failure."""
        self.expect(request)
        self._results[request.operation_id] = result

    def report(self, error: BaseException | None) -> None:
        """Send what there is to tell of the task, which ended with ``error``; raises nothing."""
        try:
            metrics.send(self.samples(error))
            for operation_id, result in self._results.items():
                record_spans(self._requests[operation_id], result)
        except Exception as problem:  # noqa: BLE001 - no task fails for want of a metric
            log.warning("There are no metrics of this task: %s", problem)

    def samples(self, error: BaseException | None) -> list[Sample]:
        """The metrics of all statements."""
        samples: list[Sample] = []
        codes = self._codes(error)
        for operation_id, request in self._requests.items():
            result = self._results.get(operation_id)
            samples += _statement_samples(request, result, codes.get(operation_id, ""))
        if error is not None and not codes:
            tags = {**_UNKNOWN, "code": _code(error)}
            samples.append(Sample(metrics.STATEMENTS, 1, "failed", tags))
        return samples

    def _codes(self, error: BaseException | None) -> dict[str, str]:
        """The codes of the statements that failed, by operation."""
        codes = {
            name: each.error.code for name, each in self._results.items() if each.error is not None
        }
        if error is None:
            return codes
        if len(self._requests) == 1:
            # Also that of a check of what a query found.
            return {name: codes.get(name, _code(error)) for name in self._requests}
        failures = error.failures if isinstance(error, TaskFailure) else ()
        named = {each.statement: each.code for each in failures if each.statement}
        for name, request in self._requests.items():
            if name not in self._results and request.origin.statement in named:
                codes[name] = named[request.origin.statement]
        return codes


def measuring(
    execute: Callable[[_Operator, Context], dict[str, Any]],
) -> Callable[[_Operator, Context], dict[str, Any]]:
    """An operator's ``execute`` that reports what its statements did, however it ends."""

    @functools.wraps(execute)
    def measured(operator: _Operator, context: Context) -> dict[str, Any]:
        operator.measured = Measured()
        try:
            value = execute(operator, context)
        except BaseException as error:
            operator.measured.report(error)
            raise
        operator.measured.report(None)
        return value

    return measured


def _code(error: BaseException) -> str:
    """The error code of what ended a task; there are only so many."""
    if isinstance(error, TaskFailure):
        return error.code
    return TIMED_OUT if isinstance(error, AirflowTaskTimeout) else TASK_ENDED


def _statement_samples(
    request: JobRequest, result: JobResult | None, code: str
) -> Iterator[Sample]:
    """The metrics of a statement; ``code`` is that of its error, empty for none."""
    tags = {
        "kind": request.statement.kind,
        "format": request.catalog.connector,
        **metrics.table_tag(str(request.target or "")),
    }
    outcome = _outcome(request, result, code)
    code_tag = {"code": code} if code else {}
    yield Sample(metrics.STATEMENTS, 1, outcome, {**tags, **code_tag})
    if outcome == "found":
        yield Sample(metrics.RETRIES, 1, "found", tags)
        # What it did was told by the try that did it.
        return
    if request.origin.is_retry and result is not None:
        yield Sample(metrics.RETRIES, 1, "repeated", tags)
    if result is not None:
        yield from _work(request, result, code, tags)


def _outcome(request: JobRequest, result: JobResult | None, code: str) -> str:
    if code:
        return "failed"
    if result is None:
        return "not_run"
    is_earlier = result.try_number != request.origin.try_number
    if is_earlier:
        return "found"
    return "dry_run" if result.is_dry else result.status


def _work(
    request: JobRequest, result: JobResult, code: str, tags: Mapping[str, str]
) -> Iterator[Sample]:
    """What the job of a statement did in this try."""
    job_metrics = result.metrics
    conflicts = job_metrics.attempts - (code != ErrorCode.COMMIT_CONFLICT.name)
    if result.compaction is not None:
        # Its attempts are rounds, of which each does something else.
        conflicts = 0
    yield Sample(metrics.ATTEMPTS, job_metrics.attempts, "", tags)
    yield Sample(metrics.CONFLICTS, conflicts, "", tags)
    yield Sample(metrics.PUBLISH_ATTEMPTS, job_metrics.publish_attempts, "", tags)
    for name, seconds in job_metrics.seconds.items():
        end = metrics.phase_end(name, request.statement.kind)
        yield Sample(metrics.PHASE, seconds, end, tags)
    if job_metrics.seconds:
        yield Sample(metrics.DURATION, sum(job_metrics.seconds.values()), "", tags)
    yield Sample(metrics.ROWS, job_metrics.source_rows, "read", tags)
    yield Sample(metrics.BYTES, sum(e.bytes for e in job_metrics.sources.values()), "read", tags)
    if result.is_dry:
        return
    yield Sample(metrics.SNAPSHOTS, _snapshots_made(result), "made", tags)
    for metric, counts in _changes(result).items():
        for end, count in counts.items():
            yield Sample(metric, count, end, tags)


def _snapshots_made(result: JobResult) -> int:
    if result.compaction is not None:
        return len(result.compaction.snapshots)
    return int(result.new_snapshot_id is not None)


def _changes(result: JobResult) -> dict[Metric, dict[str, int]]:
    """Rows, files, bytes and snapshots by what was done to them."""
    if result.compaction is not None:
        return _of_compaction(result.compaction)
    if result.maintenance is not None:
        return _of_maintenance(result.maintenance)
    return _of_rows(result.metrics)


def _of_rows(found: Metrics) -> dict[Metric, dict[str, int]]:
    return {
        metrics.ROWS: {
            "inserted": found.inserted,
            "updated": found.updated,
            "deleted": found.deleted,
            "copied": found.carried,
        },
        metrics.FILES: {
            "added": found.files_added,
            "removed": found.files_removed,
            "rewritten": found.files_rewritten,
        },
        metrics.BYTES: {"added": found.bytes_added, "removed": found.bytes_removed},
    }


def _of_compaction(report: CompactionReport) -> dict[Metric, dict[str, int]]:
    return {
        metrics.ROWS: {"copied": report.rows},
        metrics.FILES: {"added": report.files_after, "removed": report.files_before},
        metrics.BYTES: {"added": report.bytes_after, "removed": report.bytes_before},
    }


def _of_maintenance(report: MaintenanceReport) -> dict[Metric, dict[str, int]]:
    files = report.data_files + report.index_files + report.manifests
    return {
        metrics.FILES: {"removed": files},
        metrics.BYTES: {"removed": report.bytes_removed},
        metrics.SNAPSHOTS: {"expired": report.snapshots},
    }
