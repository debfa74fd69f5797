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
from typing import Any, Final

_MARKER_END = ">>"
# Characters: a message with a long value of a row must not make a result that nobody can read.
_LONGEST_MESSAGE = 20_000


class ErrorCode(Enum):
    """Stable names of everything that can go wrong.

    A value also has the class of the error, and whether a retry may help.
    """

    REQUEST_INVALID = ("REQUEST_INVALID", "RequestError", False)
    REQUEST_VERSION_UNKNOWN = ("REQUEST_VERSION_UNKNOWN", "RequestError", False)
    OPERATION_ID_REUSED = ("OPERATION_ID_REUSED", "CommitError", False)

    SYNTAX_ERROR = ("SYNTAX_ERROR", "RequestError", False)
    COLUMN_NOT_FOUND = ("COLUMN_NOT_FOUND", "AnalysisError", False)
    COLUMN_EXISTS = ("COLUMN_EXISTS", "AnalysisError", False)
    AMBIGUOUS_REFERENCE = ("AMBIGUOUS_REFERENCE", "AnalysisError", False)
    DUPLICATE_ASSIGNMENT = ("DUPLICATE_ASSIGNMENT", "AnalysisError", False)
    EXPRESSION_NOT_ALLOWED = ("EXPRESSION_NOT_ALLOWED", "AnalysisError", False)
    SCHEMA_CHANGED = ("SCHEMA_CHANGED", "AnalysisError", False)
    TYPE_MISMATCH = ("TYPE_MISMATCH", "AnalysisError", False)
    EXPRESSION_INVALID = ("EXPRESSION_INVALID", "AnalysisError", False)

    NOT_SUPPORTED = ("NOT_SUPPORTED", "NotSupportedError", False)

    WAREHOUSE_NOT_FOUND = ("WAREHOUSE_NOT_FOUND", "CatalogError", False)
    WAREHOUSE_ACCESS_DENIED = ("WAREHOUSE_ACCESS_DENIED", "CatalogError", False)
    WORKSPACE_ACCESS_DENIED = ("WORKSPACE_ACCESS_DENIED", "CatalogError", False)
    TABLE_NOT_FOUND = ("TABLE_NOT_FOUND", "CatalogError", False)
    TABLE_DIFFERS = ("TABLE_DIFFERS", "CatalogError", False)
    TABLE_EXISTS = ("TABLE_EXISTS", "CatalogError", False)
    SNAPSHOT_NOT_FOUND = ("SNAPSHOT_NOT_FOUND", "CatalogError", False)
    TAG_NOT_FOUND = ("TAG_NOT_FOUND", "CatalogError", False)
    TAG_EXISTS = ("TAG_EXISTS", "CatalogError", False)
    BRANCH_NOT_FOUND = ("BRANCH_NOT_FOUND", "CatalogError", False)
    BRANCH_EXISTS = ("BRANCH_EXISTS", "CatalogError", False)
    SOURCE_NOT_FOUND = ("SOURCE_NOT_FOUND", "CatalogError", True)
    SOURCE_UNREADABLE = ("SOURCE_UNREADABLE", "CatalogError", False)
    SOURCE_REPLACED = ("SOURCE_REPLACED", "CatalogError", False)
    METADATA_UNREADABLE = ("METADATA_UNREADABLE", "CatalogError", False)
    DATA_FILE_UNREADABLE = ("DATA_FILE_UNREADABLE", "CatalogError", False)
    LIBRARY_MISSING = ("LIBRARY_MISSING", "CatalogError", False)
    JAVA_NOT_FOUND = ("JAVA_NOT_FOUND", "CatalogError", False)
    LOCALE_MISSING = ("LOCALE_MISSING", "CatalogError", False)
    USER_MISSING = ("USER_MISSING", "CatalogError", False)

    MERGE_TARGET_ROW_MULTIPLE_MATCHES = ("MERGE_TARGET_ROW_MULTIPLE_MATCHES", "DataError", False)
    VALUE_NOT_STORABLE = ("VALUE_NOT_STORABLE", "DataError", False)
    NOT_NULL_VIOLATION = ("NOT_NULL_VIOLATION", "DataError", False)
    DUPLICATE_KEY_INSERT = ("DUPLICATE_KEY_INSERT", "DataError", False)
    KEY_CHANGED = ("KEY_CHANGED", "DataError", False)
    EXPRESSION_FAILED = ("EXPRESSION_FAILED", "DataError", False)
    ROW_OUTSIDE_PARTITION = ("ROW_OUTSIDE_PARTITION", "DataError", False)
    PARTITION_NOT_EXPECTED = ("PARTITION_NOT_EXPECTED", "DataError", False)
    PARTITION_NOT_FOUND = ("PARTITION_NOT_FOUND", "DataError", False)
    TOO_MANY_PARTITIONS = ("TOO_MANY_PARTITIONS", "DataError", False)
    SOURCE_EMPTY = ("SOURCE_EMPTY", "DataError", False)
    SOURCE_KEY_NOT_UNIQUE = ("SOURCE_KEY_NOT_UNIQUE", "DataError", False)
    CHANGE_EVENT_INVALID = ("CHANGE_EVENT_INVALID", "DataError", False)
    VERSION_LATE = ("VERSION_LATE", "DataError", False)
    VERSION_DIFFERS = ("VERSION_DIFFERS", "DataError", False)
    VERSIONS_INVALID = ("VERSIONS_INVALID", "DataError", False)
    TOO_MANY_BAD_ROWS = ("TOO_MANY_BAD_ROWS", "DataError", False)
    ROWS_TOO_LONG = ("ROWS_TOO_LONG", "DataError", False)
    RESULT_TOO_LARGE = ("RESULT_TOO_LARGE", "DataError", False)
    CHECK_FAILED = ("CHECK_FAILED", "DataError", False)
    GUARD_FAILED = ("GUARD_FAILED", "DataError", False)

    COMMIT_CONFLICT = ("COMMIT_CONFLICT", "CommitError", True)
    COMMIT_OUTCOME_UNKNOWN = ("COMMIT_OUTCOME_UNKNOWN", "CommitError", True)
    COMMIT_HISTORY_EXPIRED = ("COMMIT_HISTORY_EXPIRED", "CommitError", False)
    MARK_LOST = ("MARK_LOST", "CommitError", False)
    COMMITS_OF_OTHERS = ("COMMITS_OF_OTHERS", "CommitError", False)
    BRANCHES_DIVERGED = ("BRANCHES_DIVERGED", "CommitError", False)
    ALREADY_PUBLISHED = ("ALREADY_PUBLISHED", "CommitError", False)
    REFERENCE_LOST = ("REFERENCE_LOST", "CommitError", False)
    RUN_GIVEN_UP = ("RUN_GIVEN_UP", "CommitError", True)
    TIME_LIMIT_REACHED = ("TIME_LIMIT_REACHED", "CommitError", True)
    ENDED_TRY_COMMITTED = ("ENDED_TRY_COMMITTED", "CommitError", False)
    SIDE_ROWS_LOST = ("SIDE_ROWS_LOST", "CommitError", False)
    APPROVAL_STALE = ("APPROVAL_STALE", "CommitError", False)

    STORAGE_UNAVAILABLE = ("STORAGE_UNAVAILABLE", "InternalError", True)
    SPARK_FAILED = ("SPARK_FAILED", "InternalError", True)
    INTERNAL_ERROR = ("INTERNAL_ERROR", "InternalError", True)

    @property
    def retryable(self) -> bool:
        """True where the same request may succeed later."""
        return self.value[2]

    @property
    def class_name(self) -> str:
        """The name of the class of such an error."""
        return self.value[1]


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
    that the statement's text names wrongly, or the parameter of a guard that does not hold.
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


_CLASSES: Final = {
    each.__name__: each
    for each in (
        RequestError,
        AnalysisError,
        CatalogError,
        DataError,
        CommitError,
        InternalError,
    )
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
    return _CLASSES[code.class_name](code, problem, remedy, places, name)


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
