"""What became of a job: the result that it stored, else what the table itself tells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from airflow_provider_merge.exceptions import job_error
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.metadata.operations import (
    forget_tries,
    note_operation,
    read_result,
    read_result_of_try,
    remove_leftovers,
    remove_result,
    require_open,
    result_location,
    shut_out,
    store_result,
)
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.submit.submitter import SubmissionError
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError

log = logging.getLogger(__name__)

# Hears of the result that the job of a request left, also of a failure.
Left = Callable[[JobRequest, JobResult], None]


def unheard(request: JobRequest, result: JobResult) -> None:
    """A ``Left`` for those who need the result alone."""


def job_outcome(
    request: JobRequest,
    hook: CatalogHook,
    failure: SubmissionError | None,
    left: Left = unheard,
) -> JobResult:
    """The result of a job that has done its work; ``failure`` is how its process ended.

    Raises:
        JobError: the job failed, its result cannot be read, or is OPERATION_ID_REUSED; or nothing
            is known of it.
    """
    # A query is not done once: every try reads anew.
    only_own = failure is not None or request.target is None
    read = read_result_of_try if only_own else read_result
    result = _left(request, hook, read(request, hook.workspace_options()), left)
    if result is None:
        require_open(request, hook.workspace_options())
        raise no_result(result_location(request), failure)
    if failure is not None:
        log.warning("The job was done, then its process failed: %s", failure)
    return result


def statement_outcome(
    request: JobRequest, hook: CatalogHook, left: Left = unheard
) -> JobResult | None:
    """The result of one of the statements of a job, of this try or an earlier one.

    None: it was not run, or died without a trace.

    Raises:
        JobError: the statement failed, its result cannot be read, or is OPERATION_ID_REUSED.
    """
    options = hook.workspace_options()
    result = read_result_of_try(request, options) or read_result(request, options)
    return _left(request, hook, result, left)


def settle_task(request: JobRequest, hook: CatalogHook, ended: str) -> None:
    """Forget the tries of a task that ends well: no later one has to look for what they did.

    ``ended``: what became of the task before it could.
    """
    if request.dry_run:
        return
    if ended:
        log.warning("The task was ended after its job had done the work: %s.", ended)
        return
    try:
        forget_tries(request, hook.workspace_options())
    except OSError as error:
        log.warning("If this task is cleared, it will take this try for an ended one: %s", error)


def forget_rows(request: JobRequest, hook: CatalogHook) -> None:
    """Remove the result of a query, which has rows in it and which no retry looks for."""
    try:
        remove_result(request, hook.workspace_options())
    except OSError as error:
        log.warning("%s stays behind: %s", result_location(request), error)


def note_work(asked: Sequence[tuple[JobRequest, CatalogHook]]) -> None:
    """Note the operations of a job whose driver may begin late, after a later one's.

    Raises:
        CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
    """
    for request, hook in asked:
        with reaching(request.catalog.workspace_location, "workspace"):
            note_operation(request, hook.workspace_options())


def give_up(asked: Sequence[tuple[JobRequest, CatalogHook]]) -> None:
    """Take from a job that may run on, or begin later, what its requests need to publish.

    First the fences of all, which need no listing. Raises nothing: its task is at its end.
    """
    for step, effect in (
        (shut_out, "may still publish, unless it loses its lease"),
        (remove_leftovers, "left temporary files"),
    ):
        for request, hook in asked:
            try:
                step(request, hook.workspace_options())
            except Exception as error:  # noqa: BLE001 - of the storage or of its library
                log.warning("Operation %s %s: %s", request.operation_id, effect, error)


def _left(
    request: JobRequest, hook: CatalogHook, result: JobResult | None, left: Left
) -> JobResult | None:
    """What the job left: the result that it stored, else what the table tells, checked."""
    if request.dry_run:
        _clean_up(request, hook)
    elif result is None and request.target is not None:
        result = _recorded(request, hook)
    if result is None:
        return None
    if result.error is not None or result.request_digest == request.digest():
        left(request, result)
    if result.error is not None:
        raise job_error(result.error)
    if result.request_digest != request.digest():
        raise _reused(result_location(request), "belongs to another request")
    return result


def _recorded(request: JobRequest, hook: CatalogHook) -> JobResult | None:
    """The result of a job that died between its commit and the end, from the table's snapshots."""
    try:
        result = hook.recorded_result(request.table, request.operation_id)
    except JobError as error:
        log.warning("The table could not be asked for the job's outcome: %s", error)
        return None
    if result is None:
        return None
    snapshot = f"snapshot {result.new_snapshot_id} of {request.table}"
    if result.request_digest != request.digest():
        raise _reused(snapshot, "belongs to another request")
    if result.retries != request.origin.retries or result.try_number > request.origin.try_number:
        raise _reused(snapshot, "was made before the task's number of retries was changed")
    if result.side_outputs:
        tables = ", ".join(each.table for each in result.side_outputs)
        log.warning(
            "The job committed %s and ended; the next try looks after %s.", snapshot, tables
        )
        return None
    log.warning(
        "The job committed %s and ended before it stored its result; the snapshot tells it.",
        snapshot,
    )
    _settle(request, hook, result)
    return result


def _clean_up(request: JobRequest, hook: CatalogHook) -> None:
    """Leave the workspace as it was before a dry run."""
    try:
        remove_leftovers(request, hook.workspace_options())
    except OSError as error:
        log.warning("%s stays behind: %s", result_location(request), error)


def _settle(request: JobRequest, hook: CatalogHook, result: JobResult) -> None:
    """Do what the job did not get to: first the result, then the guard that held the history."""
    options = hook.workspace_options()
    try:
        store_result(request, result, options)
        hook.release_guard(request.table, request.operation_id)
        remove_leftovers(request, options)
    except OSError as error:
        log.warning("Files of operation %s stay behind: %s", request.operation_id, error)


def _reused(what: str, problem: str) -> CommitError:
    return CommitError(
        ErrorCode.OPERATION_ID_REUSED,
        f"{what} {problem}",
        "Clear the task, so that it runs as new work.",
    )


def no_result(location: str, failure: SubmissionError | None, more: str = "") -> InternalError:
    """The error of a job that left nothing of this try at ``location``."""
    ended = str(failure) if failure else "The Spark job ended."
    message = f"{ended}\nIt left no result of this try at {location}."
    see_log = (
        "See the driver's log: in client mode above, in cluster mode in the application's log."
    )
    return InternalError(
        ErrorCode.SPARK_FAILED,
        f"{message}\n{more}" if more else message,
        (failure.remedy if failure else "") or see_log,
    )
