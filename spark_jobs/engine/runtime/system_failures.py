"""What the operating system refuses: a full or read-only disk, long names, users without rights."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple

from spark_jobs.contract.access_rights import DENIED, denied, is_denial
from spark_jobs.errors import ErrorCode, JobError, error_of, excerpt

_SHOWN: Final = 500


class _Refusal(NamedTuple):
    code: ErrorCode
    problem: str
    remedy: str


_FULL: Final = _Refusal(
    ErrorCode.STORAGE_UNAVAILABLE,
    "A disk is full",
    "Make room on the warehouse, in spark.local.dir of the executors, or in TMPDIR of the driver, "
    "whichever is named; or let these settings name larger disks.",
)
_READ_ONLY: Final = _Refusal(
    ErrorCode.STORAGE_UNAVAILABLE,
    "A disk can only be read",
    "Name a folder that can be written: TMPDIR of the driver, spark.local.dir of the executors.",
)
_TOO_LONG: Final = _Refusal(
    ErrorCode.VALUE_NOT_STORABLE,
    "The name of a file is too long for its storage",
    "Names of partitions hold their values: partition by a column with shorter ones.",
)
_BY_NUMBER: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.ENAMETOOLONG: _TOO_LONG,
}
# How Java spells them, in the messages of these exceptions.
_BY_TEXT: Final = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    "DSQuotaExceededException": _FULL,
    "Read-only file system": _READ_ONLY,
    "File name too long": _TOO_LONG,
    "PathComponentTooLongException": _TOO_LONG,
}
_DENIED_BY_TEXT: Final = ("Permission denied", "AccessDeniedException", "AccessControlException")
# Spark's own, in spark.local.dir, which neither warehouse nor workspace is.
_LOCAL_BLOCKS: Final = "/blockmgr-"
_JAVA: Final = ("java.io.", "java.nio.file.", "org.apache.hadoop.", "HDFS, ")


def refused_by_system(error: BaseException, text: str) -> JobError | None:
    """The error for what an operating system refused; None if it is none of these.

    ``text`` is that of ``error``. It may hold the failure of a task, of which nothing else is left.
    """
    if isinstance(error, OSError) and error.errno in _BY_NUMBER:
        return _told(_BY_NUMBER[error.errno], text)
    if is_denial(error):
        return denied(text)
    for line in text.splitlines():
        refusal = _in_line(line.strip())
        if refusal is not None:
            return _told(refusal, line)
    return denied_in(text)


def denied_in(text: str) -> JobError | None:
    """The error for what Java, or Python in a task, may not do; None if ``text`` tells of none."""
    line = next((line for line in text.splitlines() if _is_denied(line.strip())), None)
    return None if line is None else denied(line)


def _is_denied(line: str) -> bool:
    if any(line.startswith(f"PermissionError: [Errno {number}]") for number in DENIED):
        return True
    if _LOCAL_BLOCKS in line or not any(name in line for name in _JAVA):
        return False
    return any(phrase in line for phrase in _DENIED_BY_TEXT)


def _in_line(line: str) -> _Refusal | None:
    for number, refusal in _BY_NUMBER.items():
        if line.startswith(f"OSError: [Errno {number}]"):
            return refusal
    if not any(name in line for name in _JAVA):
        return None
    return next((refusal for phrase, refusal in _BY_TEXT.items() if phrase in line), None)


def _told(refusal: _Refusal, text: str) -> JobError:
    line = text.strip().partition("\n")[0]
    return error_of(refusal.code, f"{refusal.problem}: {excerpt(line, _SHOWN)}", refusal.remedy)
