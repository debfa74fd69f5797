"""Checks of the rows that a statement changes: queries that must return no row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from spark_jobs.contract.checks import require
from spark_jobs.errors import AnalysisError, ErrorCode

# What checks can read besides the statement's sources.
CHANGES: Final = "changes"
NEW_ROWS: Final = "new_rows"
TARGET: Final = "target"
CHECKED_VIEWS: Final = (CHANGES, NEW_ROWS, TARGET)
# The columns of ``changes``.
OPERATION: Final = "operation"
CLAUSE: Final = "clause"
OLD: Final = "old"
NEW: Final = "new"
# The values of ``operation``.
CHANGED_OPERATIONS: Final = ("insert", "update", "delete")
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A query in Spark SQL that must return no row, as dbt's tests; ``name`` is for people.

    It reads ``changes`` (the rows that the statement changes: ``operation``, ``clause``, ``old``
    and ``new``), ``new_rows`` (those that it stores), ``target`` (the table as it will be) and the
    statement's sources by their names.
    """

    name: str
    sql: str

    def __post_init__(self) -> None:
        fits = bool(self.name.strip()) and len(self.name) <= _LONGEST_NAME
        is_name = fits and self.name.isprintable()
        require(is_name, "checks", f"{self.name!r} is not a name of one line")
        require(bool(self.sql.strip()), "checks", f"the query of {self.name!r} is empty")


def require_checkable(checks: Sequence[RowCheck], source_names: Iterable[str]) -> None:
    """Refuse checks with equal names, and sources that have the name of what checks read.

    Raises:
        RequestError: REQUEST_INVALID, naming the check or the source.
    """
    names = [each.name for each in checks]
    for name in names:
        require(names.count(name) == 1, "checks", f"{name!r} occurs more than once")
    for name in source_names if checks else ():
        require(
            name.lower() not in CHECKED_VIEWS,
            f"sources.{name}",
            f"is what checks call {_MEANINGS.get(name.lower(), '')}",
            "Give the source another name.",
        )


def always_returns_a_row(check: str) -> AnalysisError:
    """The error for a check that cannot hold; ``check`` is what people call it."""
    return AnalysisError(
        ErrorCode.EXPRESSION_INVALID,
        f"{check} can never hold: an aggregate without GROUP BY and HAVING always returns a row",
        "Return the wrong rows themselves, or add what must not be: HAVING count(*) > 100.",
    )


_MEANINGS: Final = {
    CHANGES: "the rows that the statement changes",
    NEW_ROWS: "the rows that the statement stores",
    TARGET: "the table as it will be",
}
