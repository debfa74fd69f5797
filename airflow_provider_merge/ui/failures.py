"""Errors of the API: a stable code, a message and a remedy, and never a secret."""

from __future__ import annotations

import logging
import traceback
from http import HTTPStatus
from typing import Any, Final

from airflow.api_fastapi.app import get_auth_manager
from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response

from airflow_provider_merge.ui.answers import Problem
from airflow_provider_merge.ui.workers import BusyError
from spark_jobs.errors import ErrorCode, InternalError, JobError, NotSupportedError, RequestError

log = logging.getLogger(__name__)

_STATUS: Final = {
    ErrorCode.TABLE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.SNAPSHOT_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.STORAGE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


def handle_failures(app: FastAPI) -> None:
    """Answer errors of ``app`` as ``Problem``; without a token, pages lead to the login."""
    app.add_exception_handler(JobError, _job_error)
    app.add_exception_handler(BusyError, _busy)
    app.add_exception_handler(TimeoutError, _late)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)


def status_of(error: JobError) -> HTTPStatus:
    """The status of an answer that is an error."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    if isinstance(error, RequestError):
        return HTTPStatus.BAD_REQUEST
    if isinstance(error, NotSupportedError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.BAD_GATEWAY


def _job_error(_: Request, error: Any) -> Response:
    return _problem(status_of(error), error.code.name, error.message, error.remedy)


def _busy(_: Request, error: Exception) -> Response:
    message = "Too many requests for tables of this connection are waiting."
    return _problem(HTTPStatus.TOO_MANY_REQUESTS, "BUSY", message, "Try again in a moment.")


def _late(_: Request, error: Exception) -> Response:
    message = "The table's store did not answer in time."
    return _problem(HTTPStatus.GATEWAY_TIMEOUT, "TIMED_OUT", message, "Try again in a moment.")


def _invalid(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    field = ".".join(str(each) for each in first["loc"][1:])
    return _problem(HTTPStatus.BAD_REQUEST, "REQUEST_INVALID", f"{field}: {first['msg']}")


def _refused(request: Request, error: Any) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "")
    if error.status_code == HTTPStatus.UNAUTHORIZED and wants_page:
        login = get_auth_manager().get_url_login(next_url=str(request.url))
        return RedirectResponse(login, HTTPStatus.TEMPORARY_REDIRECT)
    status = HTTPStatus(error.status_code)
    return _problem(status, status.name, str(error.detail))


def unexpected(error: Exception) -> InternalError:
    """The error for a failure without a code, of which the log has all but the text.

    The texts of libraries may hold what was sent, such as an address with a password.
    """
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("A request for a table failed with %s:\n%s", type(error).__name__, where)
    return InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"The request failed ({type(error).__name__}).",
        "Airflow's administrator finds more in the log of the API server.",
    )


def _problem(status: HTTPStatus, code: str, message: str, remedy: str = "") -> Response:
    content = Problem(code=code, message=message, remedy=remedy).model_dump()
    return JSONResponse(content, status)
