"""The job: read the request, run its statement, store the result, set the exit code.

``spark-submit … main.py --request FILE [--credentials FILE]``, or ``--batch FILE`` for several
statements. Some statements need no Spark session (see ``spark_jobs.run.run``): ``python main.py
--no-session --request FILE``. ``spark_jobs.run`` does the same for tests and notebooks; it is
imported, and the catalog opened, while Java starts the session.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from spark_jobs.contract.arguments import (
    ANSWERS,
    BATCH,
    CREDENTIALS,
    LAUNCHED,
    NO_SESSION,
    REQUEST,
    VERSIONS_TOLD,
)
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.job_lines import application_line, taken_line_secret
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.tested_versions import RANGES, installed_versions, untested_versions
from spark_jobs.engine.runtime.java_names import remember_java_names
from spark_jobs.engine.runtime.progress import Progress, log, sign_lines, tell_operator, tell_phases
from spark_jobs.engine.runtime.redaction import Redaction
from spark_jobs.engine.runtime.start import count_imports, count_launch, start_workers, stop
from spark_jobs.engine.runtime.surroundings import own_session
from spark_jobs.errors import ErrorCode, JobError, RequestError

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


def main(arguments: list[str] | None = None) -> int:
    """The entry point of spark-submit; 0 if every statement succeeded, else 1."""
    _set_up_logs()
    parsed = _parser().parse_args(arguments)
    if not parsed.versions_told:
        for sentence in untested_versions(installed_versions(RANGES, sys.path)):
            log.warning("%s", sentence)
    secret = taken_line_secret(parsed.answers) if parsed.answers is not None else ""
    if secret:
        sign_lines(secret)
    try:
        return 0 if _runs_well(parsed, is_heard=bool(secret)) else 1
    except JobError as error:
        log.error("%s", error)
    except Exception:  # noqa: BLE001 - logged here: a trace printed by Python has secrets
        log.exception("The job failed without a result.")
    return 1


def _runs_well(parsed: argparse.Namespace, *, is_heard: bool) -> bool:
    """Start what the job needs, and run it; returns whether every statement succeeded.

    ``is_heard``: by the operator, which knows the job's own lines.
    """
    progress, spark = Progress(), None
    count_imports(progress)
    # Documents that spark-submit ships are there once there is a session.
    names = [parsed.request or parsed.batch, parsed.credentials]
    are_here = all(Path(name).is_file() for name in names if name)
    work = _Work.of(parsed) if are_here else None
    with ThreadPoolExecutor(1, "ahead") as ahead:
        opened = None
        if work is not None and isinstance(work.document, JobRequest):
            opened = ahead.submit(_opened, work.document, work.credentials)
        if not parsed.no_session:
            with progress.phase("session"):
                spark = own_session()
            count_launch(progress, spark, parsed.launched)
            remember_java_names(spark)
            start_workers(spark)
            _say_application(spark)
        # Until here, a cluster's client is listened to, for the id of the application.
        if is_heard:
            tell_phases()
        try:
            return _is_done(work or _Work.of(parsed), spark, progress, parsed.answers, opened)
        finally:
            if spark is not None:
                stop(spark)


def _is_done(
    work: _Work,
    spark: SparkSession | None,
    progress: Progress,
    answers: Path | None,
    opened: Future[Connector] | None,
) -> bool:
    """Run the request or batch; returns whether every statement succeeded."""
    with progress.phase("imports"):
        from spark_jobs.run import run_all, run_and_hand_over, summary
    document, credentials = work.document, work.credentials
    if isinstance(document, JobBatch):
        assert spark is not None  # noqa: S101 - the operator starts a session for a batch
        results = run_all(document, spark, credentials, answers)
        done = [each for each in results.values() if each.error is None]
        return len(done) == len(document.requests)
    result = run_and_hand_over(document, spark, credentials, progress, answers, opened)
    log.info("%s", summary(result))
    return result.error is None


def _opened(request: JobRequest, credentials: dict[str, str]) -> Connector:
    from spark_jobs.run import open_of

    return open_of(request, credentials)


@dataclass(frozen=True, slots=True)
class _Work:
    """What the documents ask for."""

    document: JobRequest | JobBatch
    credentials: dict[str, str]

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> _Work:
        """What the arguments name.

        Raises:
            RequestError: a document cannot be read.
        """
        if parsed.batch is not None:
            batch = JobBatch.from_json(_text(BATCH, parsed.batch))
            return cls(batch, _credentials(parsed))
        return cls(JobRequest.from_json(_text(REQUEST, parsed.request)), _credentials(parsed))


def _set_up_logs() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # They log each error of an expression again, with its JVM trace; the result has it in one line.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run statements on lakehouse tables.")
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument(REQUEST, help="JobRequest document (JSON)")
    work.add_argument(BATCH, help="JobBatch document (JSON)")
    parser.add_argument(CREDENTIALS, help="JSON object of secrets, readable by its owner only")
    parser.add_argument(ANSWERS, type=Path, help="folder where last looks are answered")
    parser.add_argument(VERSIONS_TOLD, action="store_true", help="those of libraries were checked")
    parser.add_argument(LAUNCHED, type=float, help="when it was launched, since 1970")
    parser.add_argument(NO_SESSION, action="store_true", help="start no Spark session")
    return parser


def _say_application(spark: SparkSession) -> None:
    context = spark.sparkContext
    tell_operator(application_line(context.applicationId, context.uiWebUrl))


def _located(option: str, name: str) -> Path:
    """The path of a document: as given, or among the files that spark-submit shipped."""
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


def _text(option: str, name: str) -> str:
    return _located(option, name).read_text(encoding="utf-8")


def _credentials(parsed: argparse.Namespace) -> dict[str, str]:
    """The job's secrets, which its logs do not show from here on.

    Their file goes if it lies in the operator's private folder: who kills the worker leaves none.
    """
    if parsed.credentials is None:
        return {}
    try:
        document = json.loads(_text(CREDENTIALS, parsed.credentials))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            f"{CREDENTIALS}: not a JSON object of strings",
            'Write the file as {"name": "secret", ...}.',
        )
    if parsed.answers is not None and Path(parsed.credentials).parent == parsed.answers:
        Path(parsed.credentials).unlink(missing_ok=True)
    Redaction.of(document.values()).guard_logs()
    return document
