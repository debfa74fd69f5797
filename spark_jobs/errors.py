"""The exception tree of the jobs and the codes that callers may rely on.

::

    JobError
    ├── RequestError        the request or the statement's text is wrong; nothing was read
    ├── AnalysisError       the statement does not fit the schemas; no data was read
    ├── NotSupportedError   understood, but refused with the reason
    ├── CatalogError        warehouse, table or source is missing or unreadable
    ├── DataError           the rows break a rule of the statement or of the table
    ├── CommitError         the table moved on, or the outcome of the commit is unknown
    └── InternalError       a defect or a failure of the cluster

An error has a stable ``code``; its texts may change. The code determines ``retryable``: after a
retryable error, the same request may succeed when it is tried again; after any other, it cannot.

An error raised in an executor reaches the driver inside the text of a Spark exception:
``marked_errors`` writes it there, ``from_marker`` finds it. Values of rows stand in such texts,
too; they cannot know the driver's mark.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

_MARKER_END = ">>"
# Characters: a message with a long value of a row must not make a result that nobody can read.
_LONGEST_MESSAGE = 20_000


class ErrorCode(Enum):
    """Stable names of everything that can go wrong; a value also says whether a retry may help."""

    REQUEST_INVALID = ("REQUEST_INVALID", False)
    REQUEST_VERSION_UNKNOWN = ("REQUEST_VERSION_UNKNOWN", False)
    OPERATION_ID_REUSED = ("OPERATION_ID_REUSED", False)

    SYNTAX_ERROR = ("SYNTAX_ERROR", False)
    COLUMN_NOT_FOUND = ("COLUMN_NOT_FOUND", False)
    AMBIGUOUS_REFERENCE = ("AMBIGUOUS_REFERENCE", False)
    DUPLICATE_ASSIGNMENT = ("DUPLICATE_ASSIGNMENT", False)
    EXPRESSION_NOT_ALLOWED = ("EXPRESSION_NOT_ALLOWED", False)
    TYPE_MISMATCH = ("TYPE_MISMATCH", False)
    EXPRESSION_INVALID = ("EXPRESSION_INVALID", False)

    NOT_SUPPORTED = ("NOT_SUPPORTED", False)

    WAREHOUSE_NOT_FOUND = ("WAREHOUSE_NOT_FOUND", False)
    WAREHOUSE_ACCESS_DENIED = ("WAREHOUSE_ACCESS_DENIED", False)
    WORKSPACE_ACCESS_DENIED = ("WORKSPACE_ACCESS_DENIED", False)
    TABLE_NOT_FOUND = ("TABLE_NOT_FOUND", False)
    TABLE_DIFFERS = ("TABLE_DIFFERS", False)
    SNAPSHOT_NOT_FOUND = ("SNAPSHOT_NOT_FOUND", False)
    TAG_NOT_FOUND = ("TAG_NOT_FOUND", False)
    TAG_EXISTS = ("TAG_EXISTS", False)
    SOURCE_NOT_FOUND = ("SOURCE_NOT_FOUND", True)
    SOURCE_UNREADABLE = ("SOURCE_UNREADABLE", False)
    METADATA_UNREADABLE = ("METADATA_UNREADABLE", False)
    DATA_FILE_UNREADABLE = ("DATA_FILE_UNREADABLE", False)
    LIBRARY_MISSING = ("LIBRARY_MISSING", False)
    JAVA_NOT_FOUND = ("JAVA_NOT_FOUND", False)
    LOCALE_MISSING = ("LOCALE_MISSING", False)
    USER_MISSING = ("USER_MISSING", False)

    MERGE_TARGET_ROW_MULTIPLE_MATCHES = ("MERGE_TARGET_ROW_MULTIPLE_MATCHES", False)
    VALUE_NOT_STORABLE = ("VALUE_NOT_STORABLE", False)
    NOT_NULL_VIOLATION = ("NOT_NULL_VIOLATION", False)
    DUPLICATE_KEY_INSERT = ("DUPLICATE_KEY_INSERT", False)
    KEY_CHANGED = ("KEY_CHANGED", False)
    EXPRESSION_FAILED = ("EXPRESSION_FAILED", False)
    ROW_OUTSIDE_PARTITION = ("ROW_OUTSIDE_PARTITION", False)
    PARTITION_NOT_EXPECTED = ("PARTITION_NOT_EXPECTED", False)
    PARTITION_NOT_FOUND = ("PARTITION_NOT_FOUND", False)
    TOO_MANY_PARTITIONS = ("TOO_MANY_PARTITIONS", False)
    SOURCE_EMPTY = ("SOURCE_EMPTY", False)
    TOO_MANY_BAD_ROWS = ("TOO_MANY_BAD_ROWS", False)
    RESULT_TOO_LARGE = ("RESULT_TOO_LARGE", False)
    CHECK_FAILED = ("CHECK_FAILED", False)

    COMMIT_CONFLICT = ("COMMIT_CONFLICT", True)
    COMMIT_OUTCOME_UNKNOWN = ("COMMIT_OUTCOME_UNKNOWN", True)
    COMMIT_HISTORY_EXPIRED = ("COMMIT_HISTORY_EXPIRED", False)
    COMMITS_OF_OTHERS = ("COMMITS_OF_OTHERS", False)
    RUN_GIVEN_UP = ("RUN_GIVEN_UP", True)
    ENDED_TRY_COMMITTED = ("ENDED_TRY_COMMITTED", False)

    STORAGE_UNAVAILABLE = ("STORAGE_UNAVAILABLE", True)
    SPARK_FAILED = ("SPARK_FAILED", True)
    INTERNAL_ERROR = ("INTERNAL_ERROR", True)

    @property
    def retryable(self) -> bool:
        """True where the same request may succeed later."""
        return bool(self.value[1])


def excerpt(text: str, longest: int) -> str:
    """``text``, or its start and end if it has more than ``longest`` characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} ... {text[-(longest // 2 - 5) :]}"


class JobError(Exception):
    """An error with a stable code, a message that names the culprit, and a remedy.

    ``problem`` says what is wrong and names the column, clause or value; ``remedy`` says what the
    reader can do. Neither ever holds a secret; long ones lose their middle. ``places``: where it
    is, the outermost first, such as a task, a parameter and a field of it. ``name``: the column
    that the statement's text names wrongly, if it is one.
    """

    def __init__(
        self,
        code: ErrorCode,
        problem: str,
        remedy: str = "",
        places: tuple[str, ...] = (),
        name: str = "",
    ) -> None:
        problem, remedy = excerpt(problem, _LONGEST_MESSAGE), excerpt(remedy, _LONGEST_MESSAGE)
        super().__init__(code, problem, remedy, places, name)
        self.code = code
        self.problem = problem
        self.remedy = remedy
        self.places = places
        self.name = name

    @property
    def message(self) -> str:
        """What people read: the places, then the problem."""
        return ": ".join((*self.places, self.problem))

    def within(self, *places: str) -> JobError:
        """The same error, in the last of ``places``, which are in one another."""
        return self.at(*places, *self.places)

    def at(self, *places: str) -> JobError:
        """The same error, at ``places`` in place of its own."""
        return error_of(self.code, self.problem, self.remedy, places, self.name)

    @property
    def retryable(self) -> bool:
        """True where the same request may succeed later."""
        return self.code.retryable

    def __str__(self) -> str:
        text = f"{self.code.name}: {self.message}"
        return f"{text} Remedy: {self.remedy}" if self.remedy else text


class RequestError(JobError):
    """The request, the operator's parameters or the statement's text are wrong."""


class AnalysisError(JobError):
    """The statement does not fit the schemas of target and source; no data was read."""


class NotSupportedError(JobError):
    """The statement or the table asks for something that is refused, with the reason."""

    def __init__(
        self, problem: str, remedy: str = "", places: tuple[str, ...] = (), name: str = ""
    ) -> None:
        super().__init__(ErrorCode.NOT_SUPPORTED, problem, remedy, places, name)

    def __reduce__(self) -> tuple[type[NotSupportedError], tuple[Any, ...]]:
        return type(self), self.args[1:]


class CatalogError(JobError):
    """A warehouse, table, source, library, Java, locale or user is missing or cannot be read."""


class DataError(JobError):
    """Rows break a rule of the statement or of the table."""


class CommitError(JobError):
    """The table moved on in a way that conflicts, or the commit's outcome is unknown."""


class InternalError(JobError):
    """A defect of this project or a failure of the cluster or its storage."""


_CLASS_OF_CODE: dict[ErrorCode, type[JobError]] = {
    **dict.fromkeys(
        (ErrorCode.REQUEST_INVALID, ErrorCode.REQUEST_VERSION_UNKNOWN, ErrorCode.SYNTAX_ERROR),
        RequestError,
    ),
    **dict.fromkeys(
        (
            ErrorCode.COLUMN_NOT_FOUND,
            ErrorCode.AMBIGUOUS_REFERENCE,
            ErrorCode.DUPLICATE_ASSIGNMENT,
            ErrorCode.EXPRESSION_NOT_ALLOWED,
            ErrorCode.TYPE_MISMATCH,
            ErrorCode.EXPRESSION_INVALID,
        ),
        AnalysisError,
    ),
    **dict.fromkeys(
        (
            ErrorCode.WAREHOUSE_NOT_FOUND,
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            ErrorCode.WORKSPACE_ACCESS_DENIED,
            ErrorCode.TABLE_NOT_FOUND,
            ErrorCode.TABLE_DIFFERS,
            ErrorCode.SNAPSHOT_NOT_FOUND,
            ErrorCode.TAG_NOT_FOUND,
            ErrorCode.TAG_EXISTS,
            ErrorCode.SOURCE_NOT_FOUND,
            ErrorCode.SOURCE_UNREADABLE,
            ErrorCode.METADATA_UNREADABLE,
            ErrorCode.DATA_FILE_UNREADABLE,
            ErrorCode.LIBRARY_MISSING,
            ErrorCode.JAVA_NOT_FOUND,
            ErrorCode.LOCALE_MISSING,
            ErrorCode.USER_MISSING,
        ),
        CatalogError,
    ),
    **dict.fromkeys(
        (
            ErrorCode.MERGE_TARGET_ROW_MULTIPLE_MATCHES,
            ErrorCode.VALUE_NOT_STORABLE,
            ErrorCode.NOT_NULL_VIOLATION,
            ErrorCode.DUPLICATE_KEY_INSERT,
            ErrorCode.KEY_CHANGED,
            ErrorCode.EXPRESSION_FAILED,
            ErrorCode.ROW_OUTSIDE_PARTITION,
            ErrorCode.PARTITION_NOT_EXPECTED,
            ErrorCode.PARTITION_NOT_FOUND,
            ErrorCode.TOO_MANY_PARTITIONS,
            ErrorCode.SOURCE_EMPTY,
            ErrorCode.TOO_MANY_BAD_ROWS,
            ErrorCode.RESULT_TOO_LARGE,
            ErrorCode.CHECK_FAILED,
        ),
        DataError,
    ),
    **dict.fromkeys(
        (
            ErrorCode.COMMIT_CONFLICT,
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            ErrorCode.COMMITS_OF_OTHERS,
            ErrorCode.RUN_GIVEN_UP,
            ErrorCode.ENDED_TRY_COMMITTED,
            ErrorCode.OPERATION_ID_REUSED,
        ),
        CommitError,
    ),
    **dict.fromkeys(
        (ErrorCode.STORAGE_UNAVAILABLE, ErrorCode.SPARK_FAILED, ErrorCode.INTERNAL_ERROR),
        InternalError,
    ),
}


def error_of(
    code: ErrorCode,
    problem: str,
    remedy: str = "",
    places: tuple[str, ...] = (),
    name: str = "",
) -> JobError:
    """The exception of the class that ``code`` belongs to."""
    if code is ErrorCode.NOT_SUPPORTED:
        return NotSupportedError(problem, remedy, places, name)
    return _CLASS_OF_CODE[code](code, problem, remedy, places, name)


@functools.cache
def job_mark() -> str:
    """What tells this driver's errors in texts from everything else there: a secret of its own."""
    return secrets.token_hex(8)


def marker_ends(mark: str) -> tuple[str, str]:
    """What stands before and behind an error's ``error_text`` in another text."""
    return f"<<job-error {mark} ", _MARKER_END


def error_text(error: JobError) -> str:
    """The error as text, for ``error_in``; the text has neither ``<`` nor ``>``."""
    document = {"code": error.code.name, "message": error.message, "remedy": error.remedy}
    return json.dumps(document).replace("<", "\\u003c").replace(">", "\\u003e")


def error_in(text: str) -> JobError | None:
    """The error whose ``error_text`` this is; None if it is none."""
    try:
        document = json.loads(text)
        return error_of(ErrorCode[document["code"]], document["message"], document["remedy"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def to_marker(error: JobError, mark: str | None = None) -> str:
    """The error as text that survives inside another exception's message.

    ``mark``: that of the driver; None where this is the driver.
    """
    start, end = marker_ends(mark or job_mark())
    return start + error_text(error) + end


@contextmanager
def marked_errors(mark: str) -> Iterator[None]:
    """Turn a ``JobError`` in an executor into a ``RuntimeError`` whose text is its marker."""
    try:
        yield
    except JobError as error:
        raise RuntimeError(to_marker(error, mark)) from None


def from_marker(text: str) -> JobError | None:
    """The first error that ``to_marker`` wrote into ``text`` for this driver; None if none is."""
    start, end = marker_ends(job_mark())
    # A marker may have been cut off.
    found = (error_in(each.partition(end)[0]) for each in text.split(start)[1:])
    return next((error for error in found if error is not None), None)
