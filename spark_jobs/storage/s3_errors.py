"""Translates failures of Amazon's client; says which connection field is wrong. Driver only.

Of a server's answer, only the code is repeated: its text may hold keys and signatures.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.contract.secret_names import code_of
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError

_KEY_CODES: Final = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignature")
_TOKEN_CODES: Final = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired")
_CLOCK_CODE: Final = "RequestTimeTooSkewed"
_REGION_CODES: Final = (
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
)
_REFUSING: Final = range(400, 500)
_TIMEOUTS: Final = (408, 499)


def status_of(error: Exception) -> int | None:
    """The HTTP status of the store's answer; None if there was no answer."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return int(status) if status is not None else None


def certainly_refused(error: Exception) -> bool:
    """Whether the request certainly was not, and will not be, carried out."""
    from botocore.exceptions import (
        ConnectTimeoutError,
        EndpointConnectionError,
        NoCredentialsError,
        PartialCredentialsError,
        SSLError,
    )

    status = status_of(error)
    if status is not None:
        return status in _REFUSING and status not in _TIMEOUTS
    never_sent = (
        ConnectTimeoutError,
        EndpointConnectionError,
        NoCredentialsError,
        PartialCredentialsError,
        SSLError,
    )
    return isinstance(error, never_sent)


def access_error(error: Exception, place: str) -> JobError:
    """The error for a failed request for ``place`` (bucket and key); it names the wrong field."""
    status, code = status_of(error), code_of(error)
    bucket = place.partition("/")[0]
    if status is None:
        return _unanswered(error, place)
    if status == 501 or code == "NotImplemented":
        return NotSupportedError(
            f"The object store of s3://{place} does not know conditional writes ({code}).",
            "Use a store with conditional writes, or a newer version of this one.",
        )
    if code == "NoSuchBucket":
        return CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"There is no bucket {bucket} in the object store ({code}).",
            "Correct warehouse or endpoint of the catalog connection, or create the bucket.",
        )
    if code in _REGION_CODES or status in (301, 307):
        return CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"The bucket {bucket} is in another region ({code}).",
            "Correct the field region of the catalog connection.",
        )
    if status in (401, 403) or code in _TOKEN_CODES:
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"The object store does not let this job write to s3://{place} ({code}).",
            _denial_remedy(code),
        )
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"The object store answered a request for s3://{place} with {status} ({code}).",
        "Look at the store's own log; the same run may succeed later.",
    )


def _denial_remedy(code: str) -> str:
    if code == "InvalidAccessKeyId":
        return "Correct the access key (login) of the catalog connection."
    if code in _KEY_CODES:
        return "Correct the secret key (password) of the catalog connection."
    if code in _TOKEN_CODES:
        return "Renew the session token (option fs.s3.securityToken) of the catalog connection."
    if code == _CLOCK_CODE:
        return "Set the clock of the driver's machine: it differs from the store's by minutes."
    return "Give the key of the catalog connection the right to list, read, write and delete there."


def _unanswered(error: Exception, place: str) -> JobError:
    from botocore.exceptions import NoCredentialsError, PartialCredentialsError

    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"There is no key for s3://{place}: the catalog connection has none, and the driver's "
            "machine offers none.",
            "Set access key (login) and secret key (password) of the catalog connection, or give "
            "the machine a role.",
        )
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"The object store of s3://{place} gave no answer ({type(error).__name__}).",
        "Check the field endpoint of the catalog connection, and the network from the driver.",
    )
