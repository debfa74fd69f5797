"""Literals of Spark SQL that are defaults of columns, evaluated without Spark.

Only those count that have one meaning in every session: a time of an instant needs its offset.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any, Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.spark_types import SparkType, parse_type

_BITS: Final = {
    **dict.fromkeys(("tinyint", "byte"), 8),
    **dict.fromkeys(("smallint", "short"), 16),
    **dict.fromkeys(("int", "integer"), 32),
    **dict.fromkeys(("bigint", "long"), 64),
}
_DECIMAL: Final = ("decimal", "dec", "numeric")
_FLOATING: Final = ("float", "real", "double")
_TEXTS: Final = ("string", "varchar", "char", "character")
_TIMES: Final = {"timestamp": True, "timestamp_ltz": True, "timestamp_ntz": False}
_STRING: Final = re.compile(r"(?P<raw>[rR])?'(?P<text>(?:[^'\\]|\\.)*)'", re.DOTALL)
_NUMBER: Final = re.compile(
    r"[+-]?\s*(?:\d{1,100}(?:\.\d{0,100})?|\.\d{1,100})(?:[eE][+-]?\d{1,3})?"
)
_BYTES: Final = re.compile(r"[xX]'((?:[0-9A-Fa-f]{2})*)'")
_DATE: Final = re.compile(r"DATE\s*'(\d{4}-\d{2}-\d{2})'", re.IGNORECASE)
_TIME: Final = re.compile(
    r"TIMESTAMP(?:_NTZ|_LTZ)?\s*'(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?"
    r"\s*(Z|UTC|[+-]\d{2}:\d{2})?'",
    re.IGNORECASE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_REMEDY: Final = (
    "Write a literal of the column's type, such as 0, 1.5, 'text', true, DATE '2026-01-31', "
    "TIMESTAMP '2026-01-31 00:00:00+00:00' or X'00FF'."
)


def literal_value(text: str, declared: str) -> Any:
    """The value of the literal ``text`` in a column of the Spark type ``declared``.

    ``None`` for NULL, else ``bool``, ``int``, ``float``, ``Decimal`` with the type's scale,
    ``str``, ``bytes``, ``date``, or ``datetime``, in UTC for an instant.

    Raises:
        ValueError: it is no literal that such a column can hold.
    """
    text, kind = text.strip(), parse_type(declared)
    if text.upper() == "NULL":
        return None
    value = _value(text, kind)
    if value is None:
        raise ValueError(f"{text} is not a literal of the type {declared.upper()}")
    return value


def require_literal(field: str, text: str, declared: str) -> Any:
    """As ``literal_value``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``.
    """
    problem, value = "", None
    try:
        value = literal_value(text, declared)
    except ValueError as error:
        problem = str(error)
    require(not problem, field, problem, _REMEDY)
    return value


def literal_text(value: Any) -> str:
    """A value of ``literal_value`` as Spark casts it to STRING, instants in UTC."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        whole = value.strftime("%Y-%m-%d %H:%M:%S").zfill(19)
        return whole + (f".{value.microsecond:06}" if value.microsecond else "")
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _value(text: str, kind: SparkType) -> Any:
    if kind.name in _TEXTS:
        return _text(text, kind)
    if kind.name == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind.name == "binary":
        parts = _BYTES.fullmatch(text)
        return bytes.fromhex(parts[1]) if parts else None
    if kind.name == "date":
        parts = _DATE.fullmatch(text)
        return dt.date.fromisoformat(parts[1]) if parts else None
    if kind.name in _TIMES:
        return _time(text, is_instant=_TIMES[kind.name])
    return _number(text, kind) if _NUMBER.fullmatch(text) else None


def _text(text: str, kind: SparkType) -> str | None:
    parts = _STRING.fullmatch(text)
    if parts is None:
        return None
    plain: str = parts["text"]
    if not parts["raw"]:
        plain = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), plain)
    longest = kind.arguments[0] if kind.arguments else len(plain)
    return plain if len(plain) <= longest else None


def _number(text: str, kind: SparkType) -> Any:
    number = Decimal(text.replace(" ", ""))
    if kind.name in _BITS:
        bits = _BITS[kind.name]
        fits = number == int(number) and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
        return int(number) if fits else None
    if kind.name in _DECIMAL:
        precision, scale = (*kind.arguments, 0)[:2] if kind.arguments else (10, 0)
        exact = number.as_tuple()
        whole = len(exact.digits) + int(exact.exponent)
        is_exact = number == round(number, scale)
        if not is_exact or (number and max(whole, 0) > precision - scale):
            return None
        return number.quantize(Decimal(1).scaleb(-scale))
    if kind.name in _FLOATING:
        found = float(number)
        return found if abs(found) < (3.4e38 if kind.name != "double" else 1.7e308) else None
    return None


def _time(text: str, *, is_instant: bool) -> dt.datetime | None:
    parts = _TIME.fullmatch(text)
    if parts is None or bool(parts[4]) != is_instant:
        return None
    zone = (parts[4] or "").upper()
    offset = "+00:00" if zone in ("Z", "UTC") else zone
    fraction = parts[3].ljust(7, "0") if parts[3] else ""
    value = dt.datetime.fromisoformat(f"{parts[1]}T{parts[2]}{fraction}{offset}")
    return value.astimezone(dt.UTC) if is_instant else value
