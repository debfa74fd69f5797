"""Partition specs as parameters: a dict of partition column → value, each value plain.

What a value is, is decided here for operators and sensors. It is never an expression: text means
itself, whatever the column's type, and is cast to it in the job. So templates can stand in values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.nothing import is_nothing
from spark_jobs.contract.partition_names import partition_text

_VALUES = "Write values of partition columns: {'day': '2026-01-31'}, in a list where several fit."
_PLAIN = str | int | Decimal | dt.date


def partition_spec(field: str, value: Any, *, blank: bool = False) -> dict[str, str]:
    """The contract's spec: SQL text by column. ``blank``: a text may be empty.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    texts = partition_texts(field, value)
    return {name: _literal(f"{field}.{name}", each, blank=blank) for name, each in texts.items()}


def partition_specs(field: str, value: Any, *, blank: bool = False) -> tuple[dict[str, str], ...]:
    """The contract's specs of a list of dicts, as of ``partition_spec``."""
    if not isinstance(value, list | tuple):
        problem = f"expected a list of partitions, found {type(value).__name__}"
        raise invalid(field, problem, _VALUES)
    for index, partition in enumerate(value):
        if partition is None or (not partition and not blank):
            raise is_nothing(f"{field}[{index}]", "None" if partition is None else "empty", _VALUES)
    named = ((f"{field}[{index}]", each) for index, each in enumerate(value))
    return tuple(partition_spec(name, each, blank=blank) for name, each in named)


def partition_texts(field: str, value: Any) -> dict[str, str | None]:
    """The same as names of partitions show it: text by column, None for NULL.

    Raises:
        RequestError: REQUEST_INVALID, naming the place below ``field``.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problem = f"expected a dict of partition column -> value, found {type(value).__name__}"
        raise invalid(field, problem, _VALUES)
    return {str(name): _text(f"{field}.{name}", each) for name, each in value.items()}


def _text(field: str, value: Any) -> str | None:
    if not isinstance(value, _PLAIN | None):
        raise invalid(
            field,
            f"{type(value).__name__} is not a partition value",
            "Use text, a whole number, a Decimal, a date, true or false, or None.",
        )
    return partition_text(value)


def _literal(field: str, text: str | None, *, blank: bool) -> str:
    if text is None:
        return "NULL"
    if not blank and not text.strip():
        raise invalid(field, "is empty", "Check the template; None means NULL.")
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
