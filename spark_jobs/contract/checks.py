"""What the contract's objects use to check their own structure."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode, RequestError


def require(condition: bool, problem: str, remedy: str = "") -> None:
    """Refuse the object that is being made unless ``condition`` holds.

    Raises:
        RequestError: REQUEST_INVALID with ``problem``, which begins with the field's name.
    """
    if not condition:
        raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy)
