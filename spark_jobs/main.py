"""The job: read the request, run its statement, store the result, set the exit code.

``spark-submit … main.py --request FILE [--credentials FILE]``, or ``--batch FILE`` for several
statements. The only place that composes the connectors' registry and the engine; ``run`` and
``run_all`` are the same for tests and notebooks. Statements that take care of a table need no Spark
session: ``python main.py --no-session --request FILE``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.maintenance import MaintenanceStatement
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.batch import run_batch
from spark_jobs.engine.failures import translated
from spark_jobs.engine.job import Job
from spark_jobs.engine.maintenance import MaintenanceJob
from spark_jobs.engine.operations import OperationLog
from spark_jobs.engine.progress import Progress, log
from spark_jobs.engine.redaction import Redaction
from spark_jobs.engine.start import count_imports, count_launch
from spark_jobs.errors import ErrorCode, JobError, RequestError


def run(
    request: JobRequest,
    spark: SparkSession | None,
    credentials: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    answers: Path | None = None,
) -> JobResult:
    """Run a request on a session that exists; never raises for what the request or data did.

    ``spark`` may be None for statements that take care of a table.

    The result is also stored as ``<warehouse>/_operations/<operation_id>.json``, unless it is that
    of a dry run or the warehouse can not be reached. ``progress`` holds the
    phases that ended before; ``answers`` as in ``LastLook``.
    """
    redaction = Redaction.of((credentials or {}).values())
    progress = progress or Progress()
    try:
        with progress.phase("catalog"):
            connector = open_connector(request.catalog, credentials or {})
    except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a result
        return OperationLog.failed(request, redaction.error(translated(error)))
    statement = request.statement
    if isinstance(statement, MaintenanceStatement):
        return MaintenanceJob(request, statement, connector, spark, progress, redaction).run()
    if spark is None:
        problem = RequestError(
            ErrorCode.REQUEST_INVALID,
            f"{statement.kind}: needs a Spark session",
            "Start the job without --no-session.",
        )
        return OperationLog.failed(request, problem)
    return Job(request, spark, connector, progress, redaction, answers).run()


def run_all(
    batch: JobBatch,
    spark: SparkSession,
    credentials: Mapping[str, str] | None = None,
    answers: Path | None = None,
) -> Mapping[int, JobResult]:
    """Run the requests of a batch, each on a session of its own; as ``run``.

    The results are by position, without those of requests that were not run.
    """

    def check_one(request: JobRequest) -> JobResult:
        return _checked(request, spark.newSession(), credentials or {})

    def run_one(request: JobRequest) -> JobResult:
        if batch.max_parallel > 1:
            # A pool each: else the tasks of the first statement would go before all others.
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", request.operation_id)
        result = _handed_over(request, spark.newSession(), credentials or {}, Progress(), answers)
        log.info("%s", summary(result))
        return result

    return run_batch(batch, check_one, run_one)


def _checked(request: JobRequest, spark: SparkSession, credentials: Mapping[str, str]) -> JobResult:
    redaction = Redaction.of(credentials.values())
    try:
        connector = open_connector(request.catalog, credentials)
    except Exception as error:  # noqa: BLE001 - a failure of any kind becomes a result
        return OperationLog.failed(request, redaction.error(translated(error)))
    return Job(request, spark, connector, redaction=redaction).check()


def _handed_over(
    request: JobRequest,
    spark: SparkSession | None,
    credentials: Mapping[str, str],
    progress: Progress,
    answers: Path | None,
) -> JobResult:
    """``run``, and the result of a dry run where its operator finds it."""
    result = run(request, spark, credentials, progress, answers)
    if request.dry_run:
        storage = open_connector(request.catalog, credentials).storage
        OperationLog(storage).hand_over(result)
    return result


def main(arguments: list[str] | None = None) -> int:
    """The entry point of spark-submit; 0 when the statement is done, 1 when it failed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # They repeat each error of an expression with its JVM trace; the result says it in a line.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    parser = argparse.ArgumentParser(description="Run one statement on a lakehouse table.")
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--request", help="JobRequest document (JSON)")
    work.add_argument("--batch", help="JobBatch document (JSON)")
    parser.add_argument("--credentials", help="JSON object of secrets, readable by its owner only")
    parser.add_argument("--answers", type=Path, help="folder where last looks are answered")
    parser.add_argument("--launched", type=float, help="when it was launched, since 1970")
    parser.add_argument("--no-session", action="store_true", help="start no Spark session")
    parsed = parser.parse_args(arguments)
    progress, spark = Progress(), None
    count_imports(progress)
    if not parsed.no_session:
        with progress.phase("session"):
            spark = SparkSession.builder.getOrCreate()
        count_launch(progress, spark, parsed.launched)
        _say_application(spark)
    try:
        credentials = _credentials(parsed.credentials)
        Redaction.of(credentials.values()).guard_logs()
        if parsed.batch is not None:
            assert spark is not None  # noqa: S101 - the operator starts a session for a batch
            text = _located("--batch", parsed.batch).read_text(encoding="utf-8")
            batch = JobBatch.from_json(text)
            results = run_all(batch, spark, credentials, parsed.answers)
            done = [each for each in results.values() if each.error is None]
            return 0 if len(done) == len(batch.requests) else 1
        text = _located("--request", parsed.request).read_text(encoding="utf-8")
        request = JobRequest.from_json(text)
        result = _handed_over(request, spark, credentials, progress, parsed.answers)
    except JobError as error:
        log.error("%s", error)
        return 1
    except Exception:  # noqa: BLE001 - told here: in a trace that Python prints secrets would show
        log.exception("The job failed without a result.")
        return 1
    finally:
        if spark is not None:
            spark.stop()
    log.info("%s", summary(result))
    return 0 if result.error is None else 1


def _say_application(spark: SparkSession) -> None:
    """Say what airflow_provider_merge.submit.applications makes a link of."""
    context = spark.sparkContext
    page = context.uiWebUrl or "none"
    log.info("Spark application id: %s, web UI: %s", context.applicationId, page)


def summary(result: JobResult) -> str:
    """The result as a short table for the log."""
    if result.error is not None:
        error = result.error
        return f"{error.code}: {error.message}" + (
            f" Remedy: {error.remedy}" if error.remedy else ""
        )
    metrics = result.metrics
    if result.maintenance is not None:
        return f"{result.target}: {result.status}, {json.dumps(asdict(result.maintenance))}"
    cells = {
        "status": result.status,
        "snapshot": f"{result.base_snapshot_id} -> {result.new_snapshot_id}",
        "source rows": metrics.source_rows,
        "matched": metrics.matched,
        "inserted": metrics.inserted,
        "updated": metrics.updated,
        "deleted": metrics.deleted,
        "carried": metrics.carried,
        "partitions": metrics.partitions_changed,
        "files": f"{metrics.files_scanned} of {metrics.files_total} scanned, "
        f"{metrics.files_rewritten} rewritten, {metrics.files_added} added, "
        f"{metrics.files_removed} removed",
        "seconds": ", ".join(f"{name} {value}" for name, value in metrics.seconds.items()),
    }
    width = max(map(len, cells))
    lines = [f"  {name:<{width}}  {value}" for name, value in cells.items()]
    return "\n".join([f"{result.target}: operation {result.operation_id}", *lines])


def _located(option: str, name: str) -> Path:
    """The document by its path, or among the files that spark-submit shipped."""
    path = Path(name)
    if path.is_file():
        return path
    if SparkSession.getActiveSession() is not None:
        shipped = Path(SparkFiles.get(path.name))
        if shipped.is_file():
            return shipped
    raise RequestError(
        ErrorCode.REQUEST_INVALID,
        f"{option}: there is no file {name}",
        "Give a path that the driver sees, or ship the file with spark-submit --files.",
    )


def _credentials(name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    try:
        document = json.loads(_located("--credentials", name).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            "--credentials: not a JSON object of strings",
            'Write the file as {"name": "secret", …}.',
        )
    return document


if __name__ == "__main__":
    sys.exit(main())
