"""Runs statements on an existing session; the only module that knows both connectors and engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Final, cast

from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.arguments import NO_SESSION
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.catalogs import credentials_of, of_catalog, of_sources, scoped
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.sources import connections_of
from spark_jobs.engine.job.batch import run_batch
from spark_jobs.engine.job.compaction_job import CompactionJob
from spark_jobs.engine.job.maintenance_job import MaintenanceJob
from spark_jobs.engine.job.query_job import QueryJob
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.job.statement_runs import preview_place
from spark_jobs.engine.job.table_jobs import AlterTableJob, CreateTableJob, DropTableJob
from spark_jobs.engine.job.undo_job import UndoJob
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress, log
from spark_jobs.engine.runtime.redaction import Redaction
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.errors import CommitError, ErrorCode, RequestError
from spark_jobs.spi.connector import Connector

_JOBS: Final[tuple[type[RequestJob], ...]] = (
    Job,
    CompactionJob,
    MaintenanceJob,
    CreateTableJob,
    AlterTableJob,
    DropTableJob,
    QueryJob,
    UndoJob,
)


def open_of(request: JobRequest, credentials: Mapping[str, str]) -> Connector:
    """The connector of the request's catalog; raises as ``open_connector``."""
    return open_connector(request.catalog, of_catalog(credentials))


def run(
    request: JobRequest,
    spark: SparkSession | None,
    credentials: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    answers: Path | None = None,
    opened: Future[Connector] | None = None,
) -> JobResult:
    """Run a request on an existing session; errors of the request or its data become results.

    ``spark`` may be None for CREATE TABLE, ALTER TABLE, maintenance statements, undo, and TRUNCATE
    and DROP PARTITION with plain constants.

    The result is also stored as ``<workspace>/_operations/<operation_id>.json``, unless it is that
    of a dry run or the workspace cannot be reached. ``progress`` holds the phases that have already
    ended; ``answers`` is as in ``LastLook``; ``opened`` is the request's connector if it is already
    being opened.
    """
    job = _job(request, spark, credentials or {}, progress or Progress(), answers, opened)
    return job.run() if isinstance(job, RequestJob) else job


def _job(
    request: JobRequest,
    spark: SparkSession | None,
    credentials: Mapping[str, str],
    progress: Progress,
    answers: Path | None = None,
    opened: Future[Connector] | None = None,
    dropped_by: JobRequest | None = None,
) -> RequestJob | JobResult:
    """The job of a request on its open catalog; a result if it cannot even begin."""
    redaction = Redaction.of(credentials.values())
    statement = request.statement
    kind = next(each for each in _JOBS if isinstance(statement, each.statements))
    reads_changes = request.guards is not None and request.guards.reads_changes
    reads_changes |= preview_place(request) is not None
    if spark is None and (reads_changes or not isinstance(statement, kind.without_session)):
        problem, remedy = "needs a Spark session", f"Start the job without {NO_SESSION}."
        refusal = RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (statement.kind,))
        return OperationLog.failed(request, refusal)
    try:
        with progress.phase("catalog"):
            connector = opened.result() if opened else open_of(request, credentials)
    except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a result
        return OperationLog.failed(request, redaction.error(translated(error)))
    access = SourceAccess(open_connector, of_sources(credentials))
    return kind(request, spark, connector, progress, redaction, answers, dropped_by, access)


def run_all(
    batch: JobBatch,
    spark: SparkSession,
    credentials: Mapping[str, str] | None = None,
    answers: Path | None = None,
) -> Mapping[int, JobResult]:
    """Run the requests of a batch as ``run`` does, each on a session of its own.

    Returns the results by position in the batch; requests that were not run have none, but those
    for which ``max_seconds`` left no time.
    """
    deadline = monotonic() + (batch.max_seconds or float("inf"))
    drops = batch.drops_behind()

    def own(request: JobRequest) -> Mapping[str, str]:
        given = credentials or {}
        own_credentials = {**batch.credentials_of(request.catalog, of_catalog(given))}
        for each in connections_of(request.sources):
            own_credentials |= scoped(each, credentials_of(each, given))
        return own_credentials

    def check_one(request: JobRequest) -> JobResult | None:
        if not isinstance(request.statement, Job.statements):
            return None
        drop = drops.get(request.operation_id)
        job = _job(request, spark.newSession(), own(request), Progress(), dropped_by=drop)
        return job.check() if isinstance(job, Job) else cast("JobResult", job)

    def run_one(request: JobRequest) -> JobResult:
        if monotonic() > deadline:
            return _not_run(request, own(request), batch.max_seconds)
        group = request.operation_id if batch.max_parallel > 1 else None
        if group is not None:
            # A pool per statement, or else the tasks of the first one would go before all others.
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", group)
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)
        progress = Progress(group)
        drop = drops.get(request.operation_id)
        session = spark.newSession()
        result = run_and_hand_over(
            request, session, own(request), progress, answers, dropped_by=drop
        )
        log.info("%s", summary(result))
        return result

    return run_batch(batch, check_one, run_one)


def _not_run(request: JobRequest, credentials: Mapping[str, str], seconds: int | None) -> JobResult:
    """The stored result of a request whose turn came too late; an earlier try's stays."""
    late = CommitError(
        ErrorCode.TIME_LIMIT_REACHED,
        f"{request.target} was not begun within max_seconds, {seconds}.",
        "The next run goes on there; or raise max_seconds.",
    )
    result = OperationLog.failed(request, late)
    if not request.dry_run:
        OperationLog(open_of(request, credentials).storage).store(result)
    return result


def run_and_hand_over(
    request: JobRequest,
    spark: SparkSession | None,
    credentials: Mapping[str, str],
    progress: Progress,
    answers: Path | None,
    opened: Future[Connector] | None = None,
    dropped_by: JobRequest | None = None,
) -> JobResult:
    """Call ``run``, and store the result of a dry run where its operator finds it."""
    job = _job(request, spark, credentials, progress, answers, opened, dropped_by)
    if not isinstance(job, RequestJob):
        return job
    result = job.run()
    if request.dry_run:
        job.log.hand_over(result)
    return result


def summary(result: JobResult) -> str:
    """The result in one line of the log; the operator's log has all counts."""
    if result.error is not None:
        error = result.error
        return f"{error.code}: {error.message}" + (
            f" Remedy: {error.remedy}" if error.remedy else ""
        )
    if result.maintenance is not None:
        return f"{result.target}: {result.status}, {json.dumps(asdict(result.maintenance))}"
    if result.alteration is not None:
        return f"{result.target}: {result.status}, {json.dumps(asdict(result.alteration))}"
    if result.undo is not None:
        return f"undo: {result.status}, {json.dumps(asdict(result.undo))}"
    if result.compaction is not None:
        counts = replace(result.compaction, partitions=())
        rounds = result.metrics.attempts
        again = f", in {rounds:,} rounds" if rounds > 1 else ""
        return f"{result.target}: {result.status}, {json.dumps(asdict(counts))}{again}"
    if result.query is not None:
        return f"query: operation {result.operation_id}, {result.query.row_count:,} rows"
    if result.dropped:
        return f"{result.target}: dropped"
    if result.made_table:
        return f"{result.target}: created"
    metrics = result.metrics
    return (
        f"{result.target}: {result.status}, snapshot {result.base_snapshot_id} -> "
        f"{result.new_snapshot_id}, inserted {metrics.inserted:,}, updated {metrics.updated:,}, "
        f"deleted {metrics.deleted:,}"
        + (f", in attempt {metrics.attempts:,}" if metrics.attempts > 1 else "")
    )
