"""Tells damaged metadata files from temporary storage failures. Runs on executors, too."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

from spark_jobs.contract.access_rights import denied, is_denial
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError

_LONGEST_TEXT: Final = 500
_PASSING: Final = frozenset(
    (
        *(errno.EIO, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.EMFILE),
        *(errno.ENFILE, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    )
)
# How pyarrow spells failures of an object store.
_STORE: Final = re.compile(r"AWS Error (?P<kind>\w+)(?: \(HTTP status (?P<status>\d+)\))?")
_REFUSALS: Final = re.compile(
    r"ACCESS|SIGNATURE|TOKEN|NO_SUCH|NOT_FOUND|INVALID|VALIDATION|MISSING"
)
_TEMPORARY: Final = (408, 429)
# How the HDFS client spells failures; table libraries pass them on unchanged.
_HDFS: Final = re.compile(
    r"(RPCError|FatalRPCError|DataTransferError|BlocksNotFound|OperationFailed|InternalError)\("
    r"|RPC listener disconnected|.*\(os error \d+\)$"
)


def file_error(place: str, error: Exception) -> JobError:
    """The error for a failure to read a metadata file of ``place`` (a table or its directory).

    STORAGE_UNAVAILABLE if the storage failed temporarily, WAREHOUSE_ACCESS_DENIED if this user may
    not read it, else METADATA_UNREADABLE.
    """
    problem = str(error) or type(error).__name__
    if len(problem) > _LONGEST_TEXT:
        problem = f"{problem[:_LONGEST_TEXT]}..."
    for cause in causes(error):
        if _is_passing(cause):
            return InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"The storage failed while the metadata of {place} was read: {problem}",
                "Check the warehouse's storage; the same run may succeed later.",
            )
        if is_denial(cause):
            return denied(f"read the metadata of {place}: {problem}", "warehouse")
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The metadata of {place} cannot be read: {problem}",
        "Check the table's directory and the job's permission to read it.",
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and the chain of its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_passing(error: BaseException) -> bool:
    """Whether a storage failed that may recover; a damaged file does not count as such."""
    if type(error) in (RuntimeError, OSError) and _HDFS.match(str(error)):
        return "AccessControlException" not in str(error)
    if not isinstance(error, OSError):
        return False
    if isinstance(error, ConnectionError | TimeoutError) or error.errno in _PASSING:
        return True
    answer = _STORE.search(str(error))
    if answer is None:
        return False
    status = int(answer["status"] or 0)
    if status:
        return status >= 500 or status in _TEMPORARY
    return _REFUSALS.search(answer["kind"]) is None
