"""Checks of columns in a few words, as queries that must return no row.

``not_null``, ``unique``, ``accepted_values`` and ``in_range`` return the rows that are wrong; the
others are those of Airflow's ``SQLColumnCheckOperator``, with its comparisons, and return what they
have computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.checks import not_among, require_column, unknown_field
from spark_jobs.contract.row_checks import NEW_ROWS, TARGET, RowCheck
from spark_jobs.contract.sql_text import name_parts, quote, sql_literal
from spark_jobs.errors import RequestError

COLUMN: Final = "column"
ROW_COUNT: Final = "row_count"
_ON: Final = "on"
_COMPARISONS: Final = {
    "equal_to": "=",
    "greater_than": ">",
    "geq_to": ">=",
    "less_than": "<",
    "leq_to": "<=",
}
_COMPUTED: Final = {
    "null_check": "count_if({0} IS NULL)",
    "distinct_check": "count(DISTINCT {0})",
    "unique_check": "count(DISTINCT {0}) - count({0})",
    "min": "min({0})",
    "max": "max({0})",
}
_EXAMPLE: Final = "Write {'column': 'id', 'not_null': True}, or {'row_count': {'geq_to': 1}}."


def column_checks(written: Mapping[str, Any], place: str) -> Iterator[RowCheck]:
    """The checks that a dict with ``column`` or ``row_count`` means; ``place`` is its parameter.

    Raises:
        RequestError: REQUEST_INVALID, naming the field.
    """
    given = {str(name): value for name, value in written.items()}
    on = given.pop(_ON, NEW_ROWS)
    if on not in (NEW_ROWS, TARGET):
        raise not_among(f"{place}.{_ON}", on, (NEW_ROWS, TARGET))
    behind = "" if on == NEW_ROWS else f" in {on}"
    if ROW_COUNT in given and COLUMN not in given:
        conditions = given.pop(ROW_COUNT)
        _refuse_others(given, (ROW_COUNT, _ON), place)
        yield _computed(f"{ROW_COUNT}{behind}", "count(*)", ROW_COUNT, conditions, on, place)
        return
    column = _column(given.pop(COLUMN, None), f"{place}.{COLUMN}")
    _refuse_others(given, (*_ROWS, *_COMPUTED), place)
    if not given:
        raise invalid(place, f"says nothing of the column {column}", _EXAMPLE)
    for kind, value in given.items():
        name, field = f"{written[COLUMN]} {kind}{behind}", f"{place}.{kind}"
        if kind in _COMPUTED:
            yield _computed(name, _COMPUTED[kind].format(column), kind, value, on, place)
        else:
            yield RowCheck(name, _ROWS[kind](column, value, on, field))


def _refuse_others(given: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in given:
        if name not in known:
            raise unknown_field(f"{place}.{name}", name, known)


def _column(written: Any, place: str) -> str:
    if not isinstance(written, str):
        raise invalid(place, f"expected the name of a column, found {written!r}", _EXAMPLE)
    try:
        require_column(place, written)
    except RequestError as error:
        raise error.at(place) from None
    return ".".join(map(quote, name_parts(written)))


def _computed(name: str, value: str, kind: str, conditions: Any, on: str, place: str) -> RowCheck:
    """A check of one value of all rows; without a value, of no rows, it holds."""
    field = f"{place}.{kind}"
    if not isinstance(conditions, Mapping) or not conditions:
        known = ", ".join(_COMPARISONS)
        raise invalid(field, f"expected comparisons, found {conditions!r}", f"Known: {known}.")
    _refuse_others(conditions, tuple(_COMPARISONS), field)
    holds = " AND ".join(
        f"{quote(kind)} {_COMPARISONS[each]} {_literal(limit, f'{field}.{each}')}"
        for each, limit in conditions.items()
    )
    return RowCheck(
        name, f"SELECT * FROM (SELECT {value} AS {quote(kind)} FROM {on}) WHERE NOT ({holds})"
    )


def _not_null(column: str, value: Any, on: str, field: str) -> str:
    _require_true(value, field)
    return f"SELECT * FROM {on} WHERE {column} IS NULL"


def _unique(column: str, value: Any, on: str, field: str) -> str:
    _require_true(value, field)
    return (
        f"SELECT {column}, count(*) AS `rows` FROM {on} WHERE {column} IS NOT NULL "
        f"GROUP BY {column} HAVING count(*) > 1"
    )


def _accepted_values(column: str, value: Any, on: str, field: str) -> str:
    if not isinstance(value, list | tuple) or not value:
        raise invalid(field, f"expected a list of values, found {value!r}")
    values = ", ".join(_literal(each, f"{field}[{index}]") for index, each in enumerate(value))
    return f"SELECT * FROM {on} WHERE {column} NOT IN ({values})"


def _in_range(column: str, value: Any, on: str, field: str) -> str:
    if not isinstance(value, list | tuple) or len(value) != 2 or value == [None, None]:
        raise invalid(field, f"expected [low, high], found {value!r}", "None has no bound.")
    low, high = value
    outside = [] if low is None else [f"{column} < {_literal(low, f'{field}[0]')}"]
    outside += [] if high is None else [f"{column} > {_literal(high, f'{field}[1]')}"]
    if not outside:
        raise invalid(field, "has no bound", "Write [low, high]; one of them may be None.")
    return f"SELECT * FROM {on} WHERE {' OR '.join(outside)}"


_ROWS: Final[Mapping[str, Callable[[str, Any, str, str], str]]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
    "in_range": _in_range,
}


def _require_true(value: Any, field: str) -> None:
    if value is not True:
        raise invalid(field, f"expected True, found {value!r}", "Leave it out if it may be.")


def _literal(value: Any, field: str) -> str:
    """A value as SQL; text means text, also where it looks like a number."""
    if not isinstance(value, bool | int | float | str | Decimal | date):
        raise invalid(field, f"{value!r} is not a number, a text or a date")
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(field, f"{value!r} is not a number", "Leave the bound out.")
    return sql_literal(value)
