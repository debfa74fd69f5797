"""What a compaction sorts rows by, if it is asked to: ``sort_by`` and ``zorder_by``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from spark_jobs.contract.checks import require
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.errors import AnalysisError, ErrorCode

_TERM: Final = re.compile(
    r"\s*(?P<column>`(?:[^`]|``)+`|[^`\s]+)"
    r"(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE,
)
_TYPE: Final = re.compile(r"\w+")
# Types that have an order, by their names in Spark, Paimon and Iceberg.
_ORDERED: Final = frozenset(
    (
        *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"),
        *("float", "real", "double", "decimal", "dec", "numeric"),
        *("date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
        *("string", "varchar", "char", "character", "binary", "varbinary", "bytes"),
    )
)

OrderParameter = Literal["sort_by", "zorder_by"]


class SortTerm(NamedTuple):
    """A column of the order; without a word about NULLs, they are where Spark has them."""

    column: str
    ascending: bool = True
    nulls_first: bool = True


def sort_terms(parameter: OrderParameter, texts: Sequence[str]) -> tuple[SortTerm, ...]:
    """What the texts of ``parameter`` say, such as ``a DESC NULLS LAST``.

    Raises:
        RequestError: REQUEST_INVALID: a text is no term, or a column is there twice.
    """
    terms: list[SortTerm] = []
    for index, text in enumerate(texts):
        field = f"{parameter}[{index}]"
        term = _term(field, text)
        require(
            parameter == "sort_by" or term == SortTerm(term.column),
            field,
            f"{text!r} has a direction, which a z-order does not have",
            "Write the column alone.",
        )
        seen = {each.column.lower() for each in terms}
        require(term.column.lower() not in seen, field, f"{term.column} is there twice")
        terms.append(term)
    return tuple(terms)


def _term(field: str, text: str) -> SortTerm:
    parts = _TERM.fullmatch(text)
    require(
        parts is not None,
        field,
        f"{text!r} does not name one column and its order",
        "Write a column, perhaps with ASC or DESC, and NULLS FIRST or NULLS LAST, behind it; "
        "in backticks, if its name has a space.",
    )
    assert parts is not None  # noqa: S101 - required above
    column = parts["column"]
    require(
        column.startswith("`") or "." not in column,
        field,
        f"{column} is a nested field, by which rows cannot be sorted",
        "Name a column; in backticks, if its name has a dot.",
    )
    ascending = (parts["direction"] or "ASC").upper() == "ASC"
    nulls = (parts["nulls"] or ("FIRST" if ascending else "LAST")).upper()
    return SortTerm(unquoted(column), ascending, nulls == "FIRST")


def resolved_terms(
    parameter: OrderParameter, texts: Sequence[str], table: str, columns: Mapping[str, str]
) -> tuple[SortTerm, ...]:
    """The terms with the names of columns as ``table`` has them; ``columns`` is name → type.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND; TYPE_MISMATCH: the type has no order.
    """
    by_name = {each.lower(): each for each in columns}
    terms: list[SortTerm] = []
    for index, term in enumerate(sort_terms(parameter, texts)):
        place = (f"{parameter}[{index}]",)
        name = by_name.get(term.column.lower())
        if name is None:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{term.column} is not a column of {table}",
                f"Its columns are: {', '.join(columns)}.",
                place,
                term.column,
            )
        kind = _TYPE.match(columns[name])
        if kind is None or kind[0].lower() not in _ORDERED:
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{name} of {table} is {columns[name]}, and values of that type have no order here",
                "Name columns of numbers, texts, binary data, dates, timestamps or booleans.",
                place,
                name,
            )
        terms.append(term._replace(column=name))
    return tuple(terms)
