"""Parameters that a template turned into text, or that people write as they are used to."""

from __future__ import annotations

import math
import re
from typing import Any

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.identifiers import unquoted

_IDENTIFIER = re.compile(r"[\w$-]+|`(?:[^`]|``)+`")


def whole_number(field: str, value: int | str | None) -> int | None:
    """A positive whole number; None where the parameter was left out or rendered as nothing.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    # int() cuts off a fraction.
    if number <= 0 or (not isinstance(value, str) and number != value):
        raise invalid(field, f"{value!r} is not a positive whole number")
    return number


def share(field: str, value: float | str | None) -> float | None:
    """A number from 0 to 1; None where the parameter was left out or rendered as nothing.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise invalid(field, f"{value!r} is not a number from 0 to 1")
    return number


def number(field: str, value: float | str | None) -> float | None:
    """A number; None where the parameter was left out or rendered as nothing.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None or value == "":
        return None
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise invalid(field, f"{value!r} is not a number")
    return found


def text(field: str, value: str | None) -> str | None:
    """Text; None where the parameter was left out or rendered as nothing.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if not isinstance(value, str | None):
        raise invalid(field, f"expected text, found {type(value).__name__}", "Put it in quotes.")
    return value or None


def identifier(field: str, value: Any) -> str:
    """The name behind an identifier: of letters, digits, ``_``, ``$`` and ``-``, or in backticks.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if not isinstance(value, str):
        raise invalid(field, f"expected text, found {type(value).__name__}", "Put it in quotes.")
    if not _IDENTIFIER.fullmatch(value):
        raise invalid(field, f"{value!r} is not an identifier", "Write a name such as t.")
    return unquoted(value)


def flag(field: str, value: bool | str | None) -> bool:
    """True or false, perhaps as the text that a template rendered; false where it was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    text = str(value or False).strip().lower()
    if text not in ("true", "false"):
        raise invalid(field, f"{value!r} is neither true nor false")
    return text == "true"


def conf_text(value: Any) -> str:
    """A value of Spark's configuration or options as Spark reads it: ``True`` is ``true``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
