"""Translates errors that Spark's parser and analyzer raise about expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException, ParseException

from spark_jobs.contract.checks import no_column
from spark_jobs.engine.analysis.expressions import Side
from spark_jobs.engine.runtime.older_spark import error_condition
from spark_jobs.engine.runtime.sql_text import split_name
from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    ErrorCode,
    JobError,
    RequestError,
    excerpt,
)

# Characters of a statement's text, and of what Spark says about it.
_LONGEST: Final = 2_000
_CODES: Final = {
    "UNRESOLVED_COLUMN": ErrorCode.COLUMN_NOT_FOUND,
    "FIELD_NOT_FOUND": ErrorCode.COLUMN_NOT_FOUND,
    "AMBIGUOUS": ErrorCode.AMBIGUOUS_REFERENCE,
    "DATATYPE_MISMATCH": ErrorCode.TYPE_MISMATCH,
}
_SEEN: Final = "NOT MATCHED sees only the source, NOT MATCHED BY SOURCE only the target."
_REMEDIES: Final = {
    ErrorCode.COLUMN_NOT_FOUND: f"Use a column that is seen there; {_SEEN}",
    ErrorCode.AMBIGUOUS_REFERENCE: "Put the alias of the target or of the source before the name.",
    ErrorCode.TYPE_MISMATCH: "Cast the values to types that go together.",
    ErrorCode.EXPRESSION_INVALID: "Correct what Spark names; functions and types are Spark SQL's.",
}
# Spark's analyzer raises these errors before there is a plan to inspect.
_NOT_ALLOWED: Final = {
    "INVALID_WHERE_CONDITION": "an aggregate or window function",
    "MISSING_GROUP_BY": "an aggregate function",
    "MISSING_AGGREGATION": "an aggregate function",
    "NESTED_AGGREGATE_FUNCTION": "an aggregate function",
    "UNSUPPORTED_GENERATOR": "a function that makes rows",
}
# Nodes that an analysed plan has if an expression involves more than one row.
NOT_A_ROW_EXPRESSION: Final = {
    "Aggregate": "an aggregate function",
    "Window": "a window function",
    "Generate": "a function that makes rows",
}


@dataclass(frozen=True, slots=True)
class ExpressionErrors:
    """The errors of one statement's expressions; ``has_source`` is True for a MERGE."""

    has_source: bool

    def not_allowed(self, where: str, text: str, what: str) -> AnalysisError:
        """EXPRESSION_NOT_ALLOWED: ``text`` contains ``what``; ``where`` names the expression."""
        text = excerpt(text, _LONGEST)
        remedy = "Write the statement as a MERGE, whose source can join and aggregate."
        if self.has_source:
            remedy = "Compute it in the source (a SQL source can join and aggregate)."
        return AnalysisError(
            ErrorCode.EXPRESSION_NOT_ALLOWED, f"{where}: {text!r} holds {what}", remedy
        )

    def translated(
        self,
        error: ParseException | AnalysisException,
        text: str,
        where: str,
        sides: Sequence[Side] = (),
    ) -> JobError:
        """The error for what Spark raised about ``text``; ``where`` names the expression.

        ``sides`` are those that it sees.
        """
        summary = excerpt(str(error).strip().splitlines()[0], _LONGEST)
        text = excerpt(text, _LONGEST)
        if isinstance(error, ParseException):
            return RequestError(
                ErrorCode.SYNTAX_ERROR,
                f"{where}: {text!r}: {summary}",
                "Write one expression of Spark SQL.",
            )
        condition = error_condition(error)
        unknown = (error.getMessageParameters() or {}).get("objectName")
        if condition.startswith("UNRESOLVED_COLUMN") and unknown and sides:
            return self._no_column(unknown, where, sides)
        if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
            return CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"{where}: {text!r}: {summary}",
                "Subqueries read the sources of the statement, by their names.",
            )
        for prefix, what in _NOT_ALLOWED.items():
            if condition.startswith(prefix):
                return self.not_allowed(where, text, what)
        code = next(
            (code for prefix, code in _CODES.items() if condition.startswith(prefix)),
            ErrorCode.EXPRESSION_INVALID,
        )
        return AnalysisError(code, f"{where}: {text!r}: {summary}", _REMEDIES[code])

    def _no_column(self, quoted: str, where: str, sides: Sequence[Side]) -> AnalysisError:
        """COLUMN_NOT_FOUND for a name in which each part has backticks."""
        first, *more = split_name(quoted)
        shown = [each for each in sides if more and each.alias.lower() == first.lower()] or sides
        columns = [(each.alias, each.columns) for each in shown]
        part = more[0] if more and len(shown) < 2 else first
        name = ".".join([first, *more])
        problem, remedy = no_column(name, part, columns, may_be_text=True)
        if self.has_source and len(sides) == 1:
            remedy += f" {_SEEN}"
        return AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy, (where,), name)
