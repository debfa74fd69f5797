"""Parameters that a template turned into text, or that people write as they are used to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from airflow_provider_merge.exceptions import invalid, no_text
from airflow_provider_merge.nothing import is_nothing
from airflow_provider_merge.templates import PLACEHOLDER, is_template
from spark_jobs.contract.durations import parse_duration, parse_limit
from spark_jobs.contract.side_outputs import require_side_table
from spark_jobs.contract.sizes import parse_size
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.errors import RequestError

_IDENTIFIER = re.compile(r"[\w$-]+|`(?:[^`]|``)+`")


def whole_number(field: str, value: int | str | None) -> int | None:
    """A positive whole number; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None:
        return None
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    # int() cuts off a fraction.
    if number <= 0 or (not isinstance(value, str) and number != value):
        raise invalid(field, f"{value!r} is not a positive whole number", "Write 1, 2, 3 ...")
    return number


def share(field: str, value: float | str | None) -> float | None:
    """A number from 0 to 1; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None:
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise invalid(field, f"{value!r} is not a number from 0 to 1", "Write a share such as 0.2.")
    return number


def number(field: str, value: float | str | None) -> float | None:
    """A number; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value is None:
        return None
    try:
        as_float = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        as_float = math.nan
    if not math.isfinite(as_float):
        raise invalid(field, f"{value!r} is not a number", "Write a number such as 100 or 0.01.")
    return as_float


def text(field: str, value: str | None) -> str | None:
    """Text; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if not isinstance(value, str | None):
        raise no_text(field, value)
    if value == "":
        raise is_nothing(field, "empty")
    return value


def duration(field: str, value: str | None) -> str | None:
    """A duration as text, such as ``7 d``; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    return _parsed(field, value, parse_duration, "Write a duration such as '7 d'.")


def byte_size(field: str, value: object) -> str | None:
    """A size with a unit as text, such as ``128 mb``; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    return _parsed(field, value, parse_size, "Write a size such as '128 mb' or '1 gb'.")


def is_number_of_bytes(value: object) -> bool:
    """Whether statements take this for a size: whole bytes, without a unit."""
    try:
        return whole_number("bytes", cast("int", value)) is not None
    except RequestError:
        return False


def is_size_with_unit(value: object) -> bool:
    """Whether compactions take this for a size."""
    try:
        return isinstance(value, str) and parse_size(value) > 0
    except ValueError:
        return False


def limit(field: str, value: str | None) -> str | None:
    """A duration back from now, or a timestamp, as text; None where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    remedy = "Write a duration such as '7 d', or a timestamp such as '2026-01-31T00:00:00+00:00'."
    return _parsed(field, value, lambda text: parse_limit(text, datetime.now(UTC)), remedy)


def _parsed(field: str, value: Any, parse: Callable[[str], Any], remedy: str) -> str | None:
    """Text that can be parsed; a template, which is rendered later, counts as such."""
    if value is None:
        return None
    if is_template(value):
        return str(value)
    if not isinstance(value, str):
        raise invalid(field, f"expected text, found {type(value).__name__}", remedy)
    try:
        parse(value)
    except ValueError as error:
        raise invalid(field, str(error), remedy) from None
    return value


def identifier(field: str, value: Any) -> str:
    """The name behind an identifier: of letters, digits, ``_``, ``$`` and ``-``, or in backticks.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if not isinstance(value, str):
        raise no_text(field, value)
    if not _IDENTIFIER.fullmatch(value):
        raise invalid(field, f"{value!r} is not an identifier", "Write a name such as t.")
    return unquoted(value)


def flag(field: str, value: bool | str | None, also: str = "") -> bool:
    """True or false, perhaps as the text that a template rendered; false where it was left out.

    ``also``: a text that the parameter may be, too, which the caller knows.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    text = "false" if value is None else str(value).strip().lower()
    if text not in ("true", "false"):
        choices = f"True, False or {also!r}" if also else "True or False"
        raise invalid(field, f"{value!r} is neither true nor false", f"Write {choices}.")
    return text == "true"


def names(field: str, value: Any) -> tuple[str, ...]:
    """Names of columns; none where the parameter was left out.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: it is no list of texts.
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise invalid(field, "expected a list of names of columns", "Write ['a', 'b'].")
    return tuple(value)


def column_list(value: Any, field: str) -> list[str]:
    """The names in a list of columns, which may be in backticks.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    if value == PLACEHOLDER:
        return [f"{PLACEHOLDER}_{field.rpartition('.')[2]}"]
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    if not is_list:
        raise invalid(field, f"expected a list of columns, found {value!r}", "Write ['a', 'b'].")
    return [unquoted(each) for each in value]


def conf_text(field: str, value: Any) -> str:
    """A value of Spark's configuration or options as Spark reads it: ``True`` is ``true``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: it is no text, number or boolean.
    """
    if value is None:
        raise is_nothing(field, "None")
    if not isinstance(value, str | int | float | Decimal):
        problem = f"expected text, found {type(value).__name__}"
        raise invalid(field, problem, "Write text, a number, true or false.")
    return str(value).lower() if isinstance(value, bool) else str(value)


def side_table(parameter: str, name: Any) -> str:
    """The name of a table on the connection of the statement.

    Raises:
        RequestError: REQUEST_INVALID, naming the parameter.
    """
    if not isinstance(name, str):
        raise invalid(parameter, f"expected database.table, found {type(name).__name__}")
    require_side_table(parameter, name)
    return name


def plain(value: Any) -> Any:
    """Tuples as lists and mappings as dicts, at any depth; everything else as it is."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
