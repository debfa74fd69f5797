"""The one place that turns Spark's failures into this project's errors."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    DataError,
    ErrorCode,
    InternalError,
    JobError,
    NotSupportedError,
    from_marker,
)

_USER_DATA_CONDITIONS = (
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "CANNOT_PARSE_TIMESTAMP",
    "DATETIME_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "INTERVAL_DIVIDED_BY_ZERO",
    "INVALID_ARRAY_INDEX",
    "INVALID_FRACTION_OF_SECOND",
    "MAP_KEY_DOES_NOT_EXIST",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "REMAINDER_BY_ZERO",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    "USER_RAISED_EXCEPTION",
)
_FILE_CONDITIONS = ("CANNOT_READ_FILE_FOOTER", "FAILED_READ_FILE", "PATH_NOT_FOUND")
# Spark 3.5 has no error conditions for these failures.
_FILE_FAILURE = re.compile(
    r"SparkFileNotFoundException: ([^\n]+)|(corrupted file: [^\n]+|\S+ is not a Parquet file[^\n]*)"
)
# Further conditions about data have these SQLSTATEs: cardinality, data exception, constraint.
_DATA_STATE = re.compile(r"SQLSTATE: 2[123]")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.([A-Z0-9_]+))?\]([^\n]*)")
# What Spark's reader raises for files that are whole: a type, an encoding, a codec.
_OTHER_TYPE = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"
_NOT_READ_BY_SPARK = re.compile(
    r"Caused by: (?:org\.apache\.spark\.SparkUnsupportedOperationException"
    r"|org\.apache\.parquet\.hadoop\.BadConfigurationException): ([^\n]+)"
)
# Spark's writer wraps what failed; the paths that it names are those of temporary files.
_WRAPPED = re.compile(r"[\w.]+: \[TASK_WRITE_FAILED\].*?\nCaused by: ", re.DOTALL)
_FRAME = re.compile(
    r"\s+at |\s+\.\.\. \d+ more|\s*Driver stacktrace|\s+Suppressed: \S+\$OriginalTryStackTrace"
)
_TRACE_LINES = 12


def translated(error: BaseException) -> JobError:
    """``error`` as a ``JobError``; a ``JobError`` is returned unchanged."""
    if isinstance(error, JobError):
        return error
    text = _WRAPPED.sub("", str(error))
    marked = from_marker(text)
    if marked is not None:
        return marked
    for condition, kind, rest in _CONDITION.findall(text):
        if condition in _USER_DATA_CONDITIONS or _DATA_STATE.search(rest):
            return DataError(
                ErrorCode.EXPRESSION_FAILED,
                f"an expression of the statement failed: [{condition}]{rest}",
                "Filter such rows out with a clause condition, or use the function's try_ form.",
            )
        if condition in _FILE_CONDITIONS:
            unread = _NOT_READ_BY_SPARK.search(text)
            if unread or kind == _OTHER_TYPE:
                return _file_of_another_form(rest, unread[1] if unread else "")
            return _unreadable_file(rest)
    failure = _FILE_FAILURE.search(text)
    if failure:
        return _unreadable_file(failure[1] or failure[2])
    if isinstance(error, AnalysisException):
        return AnalysisError(
            ErrorCode.EXPRESSION_INVALID,
            text.strip().splitlines()[0],
            "Correct the part of the statement or of its source that Spark names.",
        )
    if isinstance(error, PySparkException | Py4JError):
        return InternalError(ErrorCode.SPARK_FAILED, shortened(text), "See the driver's log.")
    return InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"{type(error).__name__}: {shortened(text)}",
        "If another run fails in the same way, report this text with the statement.",
    )


def _unreadable_file(problem: str) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"a file is missing or damaged: {problem.strip()}",
        "Look for who removed or changed it; nothing was changed by this statement.",
    )


def _file_of_another_form(problem: str, reason: str) -> NotSupportedError:
    said = f"{problem.strip()} {reason}".rstrip()
    return NotSupportedError(
        f"A file is whole, but Spark's reader does not read it: {said}",
        "Let an engine that reads the file write its rows again.",
    )


def shortened(trace: str) -> str:
    """A trace without the frames of Spark's own code, cut to its first and last lines."""
    lines = [line.rstrip() for line in trace.splitlines() if line.strip()]
    useful = [line for line in lines if not _FRAME.match(line) and "/pyspark/" not in line]
    if len(useful) > _TRACE_LINES:
        half = _TRACE_LINES // 2
        useful = [*useful[:half], "…", *useful[-half:]]
    return "\n".join(useful)
