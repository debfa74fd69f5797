"""What a query's rows must be like for its task to succeed."""

from __future__ import annotations

from typing import Any, Final

from spark_jobs.contract.query import QueryReport
from spark_jobs.errors import DataError, ErrorCode

ALL_TRUE: Final = "all_true"
NO_ROWS: Final = "no_rows"
CHECKS: Final = (ALL_TRUE, NO_ROWS)

_REMEDY = "Look at the rows that the query finds, and at what wrote them."
_LONGEST = 200


def check_rows(check: str | None, report: QueryReport) -> None:
    """Check what a query found; ``all_true`` needs its rows in the result.

    Raises:
        DataError: CHECK_FAILED, with the values that are not as they should be.
    """
    if check == NO_ROWS and report.row_count:
        number = f"more than {report.row_count:,}" if report.truncated else f"{report.row_count:,}"
        where = f"in {report.location}" if report.rows is None else f"first: {_first(report)}"
        raise _failed(f"expected no rows, found {number}, {where}")
    if check == ALL_TRUE:
        rows = report.rows or ()
        if len(rows) != 1:
            raise _failed(f"expected one row, found {len(rows):,}")
        if any(value is not True for value in rows[0]):
            raise _failed(f"not everything is true: {_first(report, but=True)}")


def _first(report: QueryReport, but: Any = ...) -> str:
    """The first row, without the values ``but``."""
    (row, *_) = report.rows or ((),)
    pairs = zip(report.columns, row, strict=True)
    text = ", ".join(f"{column.name} = {value!r}" for column, value in pairs if value is not but)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _failed(problem: str) -> DataError:
    return DataError(ErrorCode.CHECK_FAILED, f"check: {problem}", _REMEDY)
