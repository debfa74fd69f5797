"""The one place that turns Spark's failures into this project's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from spark_jobs.engine.runtime.system_failures import denied_in, refused_by_system
from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    DataError,
    ErrorCode,
    InternalError,
    JobError,
    NotSupportedError,
    excerpt,
    from_marker,
)

# Conditions about data whose SQLSTATE does not tell it.
_USER_DATA_CONDITIONS: Final = (
    "_LEGACY_ERROR_TEMP_2128",  # arrays of keys and values of different lengths
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "CANNOT_PARSE_TIMESTAMP",
    "DATETIME_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "INTERVAL_DIVIDED_BY_ZERO",
    "INVALID_ARRAY_INDEX",
    "INVALID_FORMAT",
    "INVALID_FRACTION_OF_SECOND",
    "MAP_KEY_DOES_NOT_EXIST",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "REMAINDER_BY_ZERO",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    "USER_RAISED_EXCEPTION",
)
# The last one is what Spark 3.5 calls the second.
_FILE_CONDITIONS: Final = (
    "CANNOT_READ_FILE_FOOTER",
    "FAILED_READ_FILE",
    "PATH_NOT_FOUND",
    "_LEGACY_ERROR_TEMP_2064",
)
# Classes of SQLSTATEs about data: cardinality, data exception, constraint, limits of values.
_DATA_STATES: Final = ("21", "22", "23", "54")
# Spark 3.5 has no error conditions for these failures; the path stands behind or before them.
_FILE_NOT_FOUND: Final = "SparkFileNotFoundException: "
_CORRUPTED: Final = "corrupted file: "
_NO_PARQUET: Final = " is not a Parquet file"
# What Spark's reader raises for files that are whole: a type, an encoding, a codec.
_OTHER_TYPE: Final = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"
_OTHER_TYPES_OF_OLD: Final = ("_LEGACY_ERROR_TEMP_2063", "_LEGACY_ERROR_TEMP_2240")
_NOT_READ_BY_SPARK: Final = re.compile(
    r"Caused by: (?:org\.apache\.spark\.SparkUnsupportedOperationException"
    r"|java\.lang\.UnsupportedOperationException"
    r"|org\.apache\.parquet\.hadoop\.BadConfigurationException): ([^\n]+)"
)
# Code of expressions, compiled or not, and what it calls to compute a value or make an exception.
_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_RAISED_FOR_OTHERS: Final = (
    "java.",
    "org.apache.spark.sql.catalyst.util.",
    "org.apache.spark.sql.errors.",
    "org.apache.spark.unsafe.types.",
)
_SEARCHED_FRAMES: Final = 10
# Spark's writer wraps what failed; the paths that it names are those of temporary files.
_WRITE_FAILED: Final = "[TASK_WRITE_FAILED]"
_CAUSE: Final = "\nCaused by: "
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.([A-Z0-9_]+))?\][^\n]*")
_STATE: Final = re.compile(r"SQLSTATE: (\w{5})")
_FRAME: Final = re.compile(
    r"\s+at |\s+\.\.\. \d+ more|\s*Driver stacktrace|\s+Suppressed: \S+\$OriginalTryStackTrace"
)
_TRACE_LINES: Final = 12
# Characters: values of rows stand in errors, and may be as long as they like.
_SEARCHED: Final = 64_000
_SHOWN: Final = 2_000
_MOST_CAUSES: Final = 20


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure that Spark has a name for, perhaps of a ``kind`` that has a name, too.

    ``text`` is its message's first line. ``is_raised_by_expression``: by its place in Spark's code,
    where its name does not tell.
    """

    condition: str
    kind: str
    state: str
    text: str
    is_raised_by_expression: bool = False

    @property
    def is_of_data(self) -> bool:
        """Whether the rows or the statement's values caused it, so that it stays."""
        return (
            self.is_raised_by_expression
            or self.condition in _USER_DATA_CONDITIONS
            or self.state[:2] in _DATA_STATES
        )

    @property
    def is_of_files(self) -> bool:
        """Whether a file could not be read."""
        return self.condition in (*_FILE_CONDITIONS, *_OTHER_TYPES_OF_OLD)

    @property
    def is_of_types(self) -> bool:
        """Whether a file holds another type than Spark reads."""
        return self.kind == _OTHER_TYPE or self.condition in _OTHER_TYPES_OF_OLD


def translated(error: BaseException) -> JobError:
    """``error`` as a ``JobError``; a ``JobError`` is returned unchanged."""
    if isinstance(error, JobError):
        return error
    whole = str(error)
    marked = from_marker(whole)
    if marked is not None:
        return marked
    if isinstance(error, ModuleNotFoundError):
        return CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"The driver's environment does not have the Python module {error.name!r}.",
            "Install its package into the Spark environment.",
        )
    text = _without_writer(excerpt(whole, _SEARCHED))
    failures = list(_named_by_spark(error)) or list(_named_in(text))
    for failure in failures:
        if failure.is_of_data:
            return DataError(
                ErrorCode.EXPRESSION_FAILED,
                f"an expression of the statement failed: {failure.text}",
                "Filter such rows out with a clause condition, or use the function's try_ form.",
            )
        if failure.is_of_files:
            problem, unread = failure.text.partition("]")[2], _NOT_READ_BY_SPARK.search(text)
            if unread or any(each.is_of_types for each in failures):
                return _file_of_another_form(problem, unread[1] if unread else "")
            return denied_in(text) or _unreadable_file(problem)
    return refused_by_system(error, text) or _without_name(error, text)


def _without_name(error: BaseException, text: str) -> JobError:
    """The error for a failure that neither Spark nor the system has a name for."""
    unreadable = _unnamed_file_failure(text)
    if unreadable:
        return _unreadable_file(unreadable)
    if isinstance(error, AnalysisException):
        return AnalysisError(
            ErrorCode.EXPRESSION_INVALID,
            excerpt(text.strip().splitlines()[0], _SHOWN),
            "Correct the part of the statement or of its source that Spark names.",
        )
    if isinstance(error, PySparkException | Py4JError):
        return InternalError(ErrorCode.SPARK_FAILED, shortened(text), "See the driver's log.")
    return InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"{type(error).__name__}: {shortened(text)}",
        "If another run fails in the same way, report this text with the statement.",
    )


def _named_by_spark(error: BaseException) -> Iterator[_Failure]:
    """What Spark's exception and its causes are called, from the outermost on."""
    cause: Any = getattr(error, "_origin", None)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return
        try:
            condition, _, kind = str(cause.getErrorClass() or "").partition(".")
            state = str(cause.getSqlState() or "")
        except (Py4JError, TypeError):
            condition = kind = state = ""  # an exception of others
        text = _first_line(str(cause.getMessage()))
        if condition and not text.startswith("["):
            text = f"[{condition}] {text}"
        is_raised = not state and _is_raised_by_expression(cause)
        if condition or is_raised:
            yield _Failure(condition, kind, state, text, is_raised)
        cause = cause.getCause()


def _is_raised_by_expression(error: Any) -> bool:
    """Whether a Java exception was raised while Spark evaluated an expression on a row.

    Spark 3.5 has no condition for ``raise_error``, nor a SQLSTATE for many others. What is not a
    RuntimeException, such as a lack of memory, is not the expression's.
    """
    if not _is_runtime_exception(error):
        return False
    frames = error.getStackTrace()
    for index in range(min(len(frames), _SEARCHED_FRAMES)):
        name = frames[index].getClassName()
        if not name.startswith(_RAISED_FOR_OTHERS):
            return bool(name.startswith(_EXPRESSIONS))
    return False


def _is_runtime_exception(error: Any) -> bool:
    kind = error.getClass()
    while kind is not None:
        if kind.getName() == "java.lang.RuntimeException":
            return True
        kind = kind.getSuperclass()
    return False


def _named_in(text: str) -> Iterator[_Failure]:
    """The same from a text, where the exception itself is lost: it came through a Python task."""
    for condition in _CONDITION.finditer(text):
        state = _STATE.search(text, condition.start(), condition.start() + _SHOWN)
        first = _first_line(condition[0])
        yield _Failure(condition[1], condition[2] or "", state[1] if state else "", first)


def _first_line(text: str) -> str:
    return excerpt(text.strip().partition("\n")[0], _SHOWN)


def _without_writer(text: str) -> str:
    """``text`` without what Spark's writer puts around the failure of a task."""
    while (place := text.find(_WRITE_FAILED)) >= 0:
        cause = text.find(_CAUSE, place)
        if cause < 0:
            break
        before = text[: max(place - 1, 0)]
        start = max(before.rfind(" "), before.rfind("\n")) + 1
        text = text[:start] + text[cause + len(_CAUSE) :]
    return text


def _unnamed_file_failure(text: str) -> str:
    """What Spark says of a file that it could not read, without a condition; may be empty."""
    for line in text.splitlines():
        if _FILE_NOT_FOUND in line:
            return line.partition(_FILE_NOT_FOUND)[2]
        if _CORRUPTED in line:
            return line[line.index(_CORRUPTED) :]
        before, phrase, after = line.partition(_NO_PARQUET)
        if phrase and before and not before[-1].isspace():
            return f"{before.split()[-1]}{phrase}{after}"
    return ""


def _unreadable_file(problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"a file is missing or damaged: {excerpt(problem.strip(), _SHOWN)}",
        "Look for who removed or changed it; nothing was changed by this statement.",
    )


def _file_of_another_form(problem: str, reason: str) -> NotSupportedError:
    said = excerpt(f"{problem.strip()} {reason}".rstrip(), _SHOWN)
    return NotSupportedError(
        f"A file is whole, but Spark's reader does not read it: {said}",
        "Let an engine that reads the file write its rows again.",
    )


def shortened(trace: str) -> str:
    """A trace without the frames of Spark's own code, cut to its first and last lines."""
    lines = [excerpt(line.rstrip(), _SHOWN) for line in trace.splitlines() if line.strip()]
    useful = [line for line in lines if not _FRAME.match(line) and "/pyspark/" not in line]
    if len(useful) > _TRACE_LINES:
        half = _TRACE_LINES // 2
        useful = [*useful[:half], "...", *useful[-half:]]
    return "\n".join(useful)
