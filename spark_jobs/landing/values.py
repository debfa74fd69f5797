"""Converts texts to values of a type, without loss: a bad text is marked, never silently NULL.

Imported by executors. Arrow's own parser converts many texts at once. If it rejects one, or would
accept what no other engine does (``0x1F`` as a number, ``1e400`` as infinity), texts are parsed one
by one.
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
    reformatted,
)

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = re.compile(
    r"[+-]?(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?"
)
_MOST_DIGITS: Final = 38
_MOST_EXPONENT_DIGITS: Final = 9
_TOO_MANY_DIGITS: Final = "it has more digits than the type"
# As Spark's CAST accepts them.
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")
_BLANKS: Final = " \t\n\v\f\r"
# At most this many texts are parsed one by one because one of them needs it.
_FEW: Final = 64


@dataclass(frozen=True, slots=True)
class TextRules:
    """How texts are read: the zone of times without an offset, and the formats in source options.

    ``zone`` is a name in the tz database or an offset (``+02:00``). A pattern of None means ISO
    8601. ``has_base64``: CSV files have bytes as Base64.
    """

    zone: str = "UTC"
    date: TimePattern | None = None
    timestamp: TimePattern | None = None
    timestamp_ntz: TimePattern | None = None
    nan: str = "NaN"
    positive_inf: str = "Inf"
    negative_inf: str = "-Inf"
    has_base64: bool = False


Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Parsed(NamedTuple):
    """The values of a column, and a mask of the bad ones, which are NULL; None if all are good."""

    values: pa.Array
    bad: Mask | None


def parsed(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> Parsed:
    """``texts`` (string) as values of ``kind``; NULL stays NULL, and a bad text becomes NULL.

    ``kind`` is an integer, FLOAT, DOUBLE, DECIMAL, BOOLEAN, DATE, TIMESTAMP with or without an
    Arrow zone, STRING, or BINARY (the text's bytes). Blanks around a value are ignored, except for
    STRING and BINARY.
    """
    if pa.types.is_string(kind):
        return Parsed(texts, None)
    if pa.types.is_binary(kind):
        return Parsed(texts.cast(kind), None)
    values = _fast(texts, kind, rules)
    if values is not None:
        return Parsed(values, None)
    tidied = _tidied(texts, kind)
    return _booleans(tidied) if pa.types.is_boolean(kind) else _by_halves(tidied, kind, rules)


def value_of(text: str, kind: pa.DataType, rules: TextRules) -> Any:
    """One text as a Python value that Arrow takes as ``kind``.

    Raises:
        NotAValue: the text is not a value of ``kind``.
    """
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return _parser(kind, rules)(text if is_text else text.strip(_BLANKS))


def _booleans(texts: pa.Array) -> Parsed:
    lowered = pc.ascii_lower(texts)
    is_true = pc.is_in(lowered, pa.array(_TRUE))
    is_value = pc.or_(is_true, pc.is_in(lowered, pa.array(_FALSE)))
    bad = pc.and_(texts.is_valid(), pc.invert(is_value)).to_numpy(zero_copy_only=False)
    return Parsed(pc.if_else(is_value, is_true, None), bad if bad.any() else None)


def _tidied(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The texts as Arrow's parser accepts them: without blanks around them or a plus sign."""
    texts = pc.utf8_trim(texts, _BLANKS)
    if pa.types.is_integer(kind):
        texts = pc.replace_substring_regex(texts, pattern=r"^\+([0-9])", replacement=r"\1")
    return texts


def _by_halves(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> Parsed:
    """Convert texts with Arrow, except for small slices that must be parsed one by one."""
    values = _fast(texts, kind, rules)
    if values is not None:
        return Parsed(values, None)
    if len(texts) <= _FEW:
        return _one_by_one(texts, kind, rules)
    half = len(texts) // 2
    parts = [_by_halves(part, kind, rules) for part in (texts[:half], texts[half:])]
    masks = [
        np.zeros(len(each.values), np.bool_) if each.bad is None else each.bad for each in parts
    ]
    bad = np.concatenate(masks)
    return Parsed(pa.concat_arrays([each.values for each in parts]), bad if bad.any() else None)


def _fast(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> pa.Array | None:
    """Convert all texts with Arrow; None if any must be parsed on its own."""
    try:
        if pa.types.is_date(kind):
            texts = reformatted(texts, rules.date, is_date=True) if rules.date else texts
            return None if texts is None else dates(texts)
        if pa.types.is_timestamp(kind):
            return _fast_times(texts, kind, rules)
        values = None if _misleads(texts, kind) else pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(values), min_count=0).as_py():
        return None
    return values


def _fast_times(texts: pa.Array, kind: pa.DataType, rules: TextRules) -> pa.Array | None:
    pattern = rules.timestamp if kind.tz else rules.timestamp_ntz
    ready = reformatted(texts, pattern, is_date=False) if pattern else texts
    if ready is None:
        return None
    values = instants(ready, rules.zone) if kind.tz else local_times(ready)
    return None if values is None else values.cast(kind)


def _misleads(texts: pa.Array, kind: pa.DataType) -> bool:
    """Whether Arrow may misread a text.

    It accepts hexadecimal integers. If a DECIMAL has more than 38 digits, including zeros added up
    to its scale, Arrow returns a wrong value or reads beyond its memory.
    """
    if pa.types.is_integer(kind):
        return _has_any(texts, b"x", b"X")
    if pa.types.is_decimal(kind):
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        return longest + kind.scale > _MOST_DIGITS or _has_any(texts, b"e", b"E")
    return False


def _has_any(texts: pa.Array, *marks: bytes) -> bool:
    """Whether one of ``marks`` occurs, possibly only in the bytes of a NULL entry."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    joined: bytes = data.slice(bounds[0], bounds[-1] - bounds[0]).to_pybytes()
    return any(mark in joined for mark in marks)


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
    digits = text.lstrip("+-0")
    # Check the length first: Python takes quadratic time for the digits of a hostile number.
    if not _WHOLE.fullmatch(text) or len(digits) > 19:
        raise NotAValue
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
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
    # Arrow's parser rounds once; converting a FLOAT through Python's double would round twice.
    value: float = float(text) if kind == pa.float64() else pa.scalar(text).cast(kind).as_py()
    if math.isinf(value):
        raise NotAValue("it is too large")
    return value


def exact_decimal(text: str, kind: pa.DataType) -> Decimal:
    """A number's text as DECIMAL; digits that do not fit are never rounded away.

    Raises:
        NotAValue: the text is not a number, or does not fit.
    """
    match = _REAL.fullmatch(text)
    if match is None:
        raise NotAValue
    whole, _, fraction = match["digits"].partition(".")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return Decimal(0)
    exponent = match["exponent"] or "0"
    # Check the length first, as above.
    if len(exponent.lstrip("+-0")) > _MOST_EXPONENT_DIGITS or len(significant) > kind.precision:
        raise NotAValue(_TOO_MANY_DIGITS)
    scale = len(fraction) - int(exponent) - (len(digits) - len(significant))
    if scale > kind.scale or len(significant) - scale > kind.precision - kind.scale:
        raise NotAValue(_TOO_MANY_DIGITS)
    return Decimal((int(text.startswith("-")), tuple(map(int, significant)), -scale))


def _dated(text: str, rules: TextRules) -> Any:
    fields = rules.date.fields(text) if rules.date else DATE_FORM.fields(text)
    if fields is None:
        raise NotAValue
    return date_of(fields)


def _timed(text: str, kind: pa.DataType, rules: TextRules) -> Any:
    if kind.tz is None:
        fields = (rules.timestamp_ntz or TIMESTAMP_FORM).fields(text)
        if fields is None or fields.offset is not None:
            raise NotAValue
        return local_time_of(fields)
    fields = (rules.timestamp or TIMESTAMP_FORM).fields(text)
    if fields is None:
        raise NotAValue
    return instant_of(fields, rules.zone)
