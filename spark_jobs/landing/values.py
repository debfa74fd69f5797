"""Texts as values of a type, without loss: a text that is not one is told, never NULL.

Imported by executors. The fast way is Arrow's own parser over a whole column. Where it refuses, or
takes what no other engine does (``0x1F`` as a number, ``1e400`` as infinity), the column is
looked at text by text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.landing.records import NotAValue
from spark_jobs.landing.time_patterns import TimePattern
from spark_jobs.landing.times import (
    DATE_FORM,
    TIMESTAMP_FORM,
    date_of,
    dates,
    instant_of,
    instants,
    local_time_of,
    local_times,
)

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# As Spark's CAST takes them.
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")
_BLANKS: Final = " \t\n\v\f\r"


@dataclass(frozen=True, slots=True)
class TextRules:
    """How texts are read: the zone of times without an offset, and what the source's options say.

    ``zone`` is a name of the tz database or an offset (``+02:00``). Patterns None: ISO 8601.
    """

    zone: str = "UTC"
    date: TimePattern | None = None
    timestamp: TimePattern | None = None
    timestamp_ntz: TimePattern | None = None
    nan: str = "NaN"
    positive_inf: str = "Inf"
    negative_inf: str = "-Inf"


Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Parsed(NamedTuple):
    """Values of a column, and which texts were none; None where all were values."""

    values: pa.Array
    bad: Mask | None


def parsed(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> Parsed:
    """``texts`` (string, NULL stays NULL) as values of ``kind``; NULL where a text is none.

    Whole numbers, FLOAT, DOUBLE, DECIMAL, BOOLEAN, DATE, TIMESTAMP with a zone (in Arrow) and
    without, STRING, BINARY (the text's bytes). Blanks around a value that is no text are ignored.
    """
    if pa.types.is_string(kind):
        return Parsed(texts, None)
    if pa.types.is_binary(kind):
        return Parsed(texts.cast(kind), None)
    fast = _fast(texts, kind, rules)
    return fast if fast is not None else _one_by_one(texts, kind, rules)


def value_of(text: str, kind: pa.DataType, rules: TextRules) -> Any:
    """One text as a Python value that Arrow takes for ``kind``.

    Raises:
        NotAValue: it is none.
    """
    return _parser(kind, rules)(text.strip(_BLANKS))


def _fast(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> Parsed | None:
    """The whole column by Arrow; None where any text needs a closer look."""
    try:
        if pa.types.is_date(kind):
            values = None if rules.date else dates(texts)
        elif pa.types.is_timestamp(kind):
            values = _fast_times(texts, kind, rules)
        else:
            values = pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None
    if values is None or _is_doubtful(texts, values):
        return None
    return Parsed(values, None)


def _fast_times(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> pa.Array | None:
    if kind.tz is None:
        return None if rules.timestamp_ntz else local_times(texts)
    return None if rules.timestamp else instants(texts, rules.zone)


def _is_doubtful(texts: pa.Array, values: pa.Array) -> bool:
    """Whether Arrow may have read a text as what it is not."""
    if pa.types.is_integer(values.type):
        return bool(pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py())
    if pa.types.is_floating(values.type):
        return bool(pc.any(pc.invert(pc.is_finite(values))).as_py())
    return False


def _one_by_one(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> Parsed:
    parse = _parser(kind, rules)
    values: list[Any] = []
    bad = np.zeros(len(texts), dtype=np.bool_)
    for index, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parse(text.strip(_BLANKS)))
        except NotAValue:
            values.append(None)
            bad[index] = True
    return Parsed(pa.array(values, kind), bad if bad.any() else None)


def _parser(kind: pa.DataType, rules: TextRules) -> Callable[[str], Any]:
    if pa.types.is_string(kind):
        return str
    if pa.types.is_binary(kind):
        return str.encode
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_integer(kind):
        return lambda text: _whole(text, kind.bit_width)
    if pa.types.is_floating(kind):
        return lambda text: _real(text, kind, rules)
    if pa.types.is_decimal(kind):
        return lambda text: exact_decimal(text, kind)
    if pa.types.is_date(kind):
        return lambda text: _dated(text, rules)
    if pa.types.is_timestamp(kind):
        return lambda text: _timed(text, kind, rules)
    raise TypeError(f"no text is a value of {kind}")


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise NotAValue


def _whole(text: str, bits: int) -> int:
    # The length first: Python takes quadratic time for the digits of a hostile number.
    if not _WHOLE.fullmatch(text) or len(text.lstrip("+-0")) > 19:
        raise NotAValue
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise NotAValue
    return value


def _real(text: str, kind: pa.DataType, rules: TextRules) -> float:
    if text == rules.nan:
        return float("nan")
    if text in (rules.positive_inf, "Infinity", "+Infinity"):
        return float("inf")
    if text in (rules.negative_inf, "-Infinity"):
        return float("-inf")
    if not _REAL.fullmatch(text):
        raise NotAValue
    # Arrow's parser rounds once; a FLOAT by way of Python's double would be rounded twice.
    value: float = pa.scalar(text.removeprefix("+")).cast(kind).as_py()
    if math.isinf(value):
        raise NotAValue("it is too large")
    return value


def exact_decimal(text: str, kind: pa.DataType) -> Decimal:
    """A number's text as DECIMAL; digits that it has no room for are never rounded away.

    Raises:
        NotAValue: no number, or one that does not fit.
    """
    if not _REAL.fullmatch(text):
        raise NotAValue
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - the form above has no NaN and no infinity
    significant = "".join(map(str, digits)).lstrip("0")
    kept = significant.rstrip("0")
    exponent += len(significant) - len(kept)
    if kept and (-exponent > kind.scale or len(kept) + exponent > kind.precision - kind.scale):
        raise NotAValue("it has more digits than the type")
    return Decimal((sign, tuple(map(int, kept)), exponent)) if kept else Decimal(0)


def _dated(text: str, rules: TextRules) -> Any:
    found = rules.date.fields(text) if rules.date else DATE_FORM.fields(text)
    if found is None:
        raise NotAValue
    return date_of(found)


def _timed(text: str, kind: pa.DataType, rules: TextRules) -> Any:
    if kind.tz is None:
        found = (rules.timestamp_ntz or TIMESTAMP_FORM).fields(text)
        if found is None or found.offset is not None:
            raise NotAValue
        return local_time_of(found)
    found = (rules.timestamp or TIMESTAMP_FORM).fields(text)
    if found is None:
        raise NotAValue
    return instant_of(found, rules.zone)
