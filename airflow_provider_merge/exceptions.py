"""From the errors of the jobs to the exceptions that tell Airflow whether to retry."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import ErrorCode, JobError, RequestError, error_of

if TYPE_CHECKING:
    from airflow_provider_merge.task_failures import TaskFailure


def airflow_exception(
    error: JobError | ErrorInfo, where: str = "", table: str = "", statement: str = ""
) -> TaskFailure:
    """``FinalFailure`` for a final error, ``PassingFailure`` where a retry may help.

    The text has the code, the message, ``where`` it happened with the target ``table``, the remedy
    and the page about the code, a line each. Callbacks find the table, too, and ``statement``, the
    name of one of several.
    """
    # Metadata readers, which raise the errors below, also work where Airflow is not installed.
    from airflow_provider_merge.task_failures import Failure, failure_of

    info = ErrorInfo.of(error) if isinstance(error, JobError) else error
    text = f"{info.code}: {info.message}"
    places = [where] if where else []
    if table:
        places.append(f"table {table}")
    if places:
        text += f"\nWhere: {', '.join(places)}"
    if info.remedy:
        text += f"\nRemedy: {info.remedy}"
    text += f"\nMore: {page_of_code(info.code)}"
    return failure_of(text, [Failure.of(info, table, statement)])


def page_of_code(code: str) -> str:
    """Where the documentation says what an error code means and what to do.

    It is an address if ``[merge] docs_url`` says where the site of the documentation is.
    """
    from airflow.providers.common.compat.sdk import conf

    site = (conf.get("merge", "docs_url", fallback="") or "").rstrip("/")
    page = f"{site}/errors.html" if site else "docs/errors.md"
    return f"{page}#{code.lower()}"


def job_error(info: ErrorInfo) -> JobError:
    """The error that a job stored as data."""
    problem = info.message.removeprefix("".join(f"{each}: " for each in info.places))
    return error_of(ErrorCode[info.code], problem, info.remedy, info.places, info.name)


def invalid(field: str, problem: str, remedy: str = "") -> RequestError:
    """The error for a parameter or a connection's field that cannot be used."""
    return RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (field,))


def no_text(field: str, value: object, remedy: str = "") -> RequestError:
    """The error for a value that is no text; what quotes make of it is its remedy, if anything."""
    if not remedy and isinstance(value, list | tuple | set | frozenset | dict):
        remedy = "Give one text."
    elif not remedy and isinstance(value, int | float | date | Decimal):
        remedy = f"Put it in quotes: '{value}'."
    problem = f"expected text, found {type(value).__name__}"
    return invalid(field, problem, remedy or "Give it a text.")
