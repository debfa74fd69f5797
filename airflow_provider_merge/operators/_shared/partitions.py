"""Partition specs as parameters: a dict of partition column → value, each value plain.

A value is never an expression: text means itself, whatever the column's type, and is cast to it in
the job. So templates can stand in values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.nothing import is_nothing

_VALUES = "Write values of partition columns: {'day': '2026-01-31'}, in a list where several fit."
_PLAIN = (str, int, Decimal, dt.date)


def partition_spec(field: str, value: Any, *, blank: bool = False) -> dict[str, str]:
    """The contract's spec: SQL text by column. ``blank``: a text may be empty.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problem = f"expected a dict of partition column -> value, found {type(value).__name__}"
        raise invalid(field, problem, _VALUES)
    return {
        str(name): _literal(f"{field}.{name}", each, blank=blank) for name, each in value.items()
    }


def partition_specs(field: str, value: Any, *, blank: bool = False) -> tuple[dict[str, str], ...]:
    """The contract's specs of a list of dicts, as of ``partition_spec``."""
    if not isinstance(value, list | tuple):
        problem = f"expected a list of partitions, found {type(value).__name__}"
        raise invalid(field, problem, _VALUES)
    for index, each in enumerate(value):
        if each is None or (not each and not blank):
            raise is_nothing(f"{field}[{index}]", "None" if each is None else "empty", _VALUES)
    named = ((f"{field}[{index}]", each) for index, each in enumerate(value))
    return tuple(partition_spec(name, each, blank=blank) for name, each in named)


def _literal(field: str, value: Any, *, blank: bool) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, _PLAIN):
        raise invalid(
            field,
            f"{type(value).__name__} is not a partition value",
            "Use text, a whole number, a Decimal, a date, true or false, or None.",
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not blank and not text.strip():
        raise invalid(field, "is empty", "Check the template; None means NULL.")
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
