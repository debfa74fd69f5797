"""From the errors of the jobs to the exceptions that tell Airflow whether to retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import ErrorCode, JobError, RequestError, error_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import AirflowException


def airflow_exception(error: JobError | ErrorInfo, where: str = "") -> AirflowException:
    """``AirflowFailException`` for a final error, ``AirflowException`` where a retry may help.

    The text has the code, the message, ``where`` it happened and the remedy, a line each.
    """
    # Metadata readers, which raise the errors below, also work where Airflow is not installed.
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    info = ErrorInfo.of(error) if isinstance(error, JobError) else error
    text = f"{info.code}: {info.message}"
    if where:
        text += f"\nWhere: {where}"
    if info.remedy:
        text += f"\nRemedy: {info.remedy}"
    return AirflowException(text) if info.retryable else AirflowFailException(text)


def job_error(info: ErrorInfo) -> JobError:
    """The error that a job stored as data."""
    return error_of(ErrorCode[info.code], info.message, info.remedy)


def invalid(field: str, problem: str, remedy: str = "") -> RequestError:
    """The error for a parameter or a connection's field that cannot be used."""
    return RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (field,))
