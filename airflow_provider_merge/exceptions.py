"""From the errors of the jobs to the exceptions that tell Airflow whether to retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import ErrorCode, JobError, RequestError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import AirflowException


def airflow_exception(error: JobError | ErrorInfo) -> AirflowException:
    """``AirflowFailException`` for a final error, ``AirflowException`` where a retry may help.

    The text has the code, the message and the remedy.
    """
    # Metadata readers, which raise the errors below, also work where Airflow is not installed.
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    info = ErrorInfo.of(error) if isinstance(error, JobError) else error
    text = f"{info.code}: {info.message}"
    if info.remedy:
        text += f"\nRemedy: {info.remedy}"
    return AirflowException(text) if info.retryable else AirflowFailException(text)


def invalid(field: str, problem: str, remedy: str = "") -> RequestError:
    """The error for a parameter or a connection's field that cannot be used."""
    return RequestError(ErrorCode.REQUEST_INVALID, f"{field}: {problem}", remedy)
