"""What a text is as a value of a type, by Python alone: the judge of every reader of texts."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tests.landing.reading import REFUSED

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_SPECIAL = {
    "NaN": "nan",
    **dict.fromkeys(("Inf", "Infinity", "+Infinity"), "inf"),
    **dict.fromkeys(("-Inf", "-Infinity"), "-inf"),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:[ T](\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?( ?Z| ?[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_EXACT = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
)


def cast(text: str, type_name: str, zone: str = "UTC") -> Any:
    """A text that is not NULL as a value, or ``REFUSED``; ``zone`` is of the tz database."""
    if type_name == "STRING":
        return text
    if type_name == "BINARY":
        return text.encode()
    text = text.strip(" \t\n\r\v\f")
    if type_name in _BITS:
        return _whole(text, _BITS[type_name])
    if type_name in ("FLOAT", "DOUBLE"):
        return _real(text, type_name)
    if type_name.startswith("DECIMAL"):
        return _decimal(text, *map(int, re.findall(r"\d+", type_name)))
    if type_name == "BOOLEAN":
        return {"t": True, "y": True, "1": True, "f": False, "n": False, "0": False}.get(
            {"true": "t", "yes": "y", "false": "f", "no": "n"}.get(text.lower(), text.lower()),
            REFUSED,
        )
    return _time(text, type_name, zone)


def _whole(text: str, bits: int) -> Any:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII) or len(text.lstrip("+-0")) > 30:
        return REFUSED
    number = Decimal(text)
    return int(number) if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else REFUSED


def _real(text: str, type_name: str) -> Any:
    if text in _SPECIAL:
        return float(_SPECIAL[text])
    if not _NUMBER.fullmatch(text):
        return REFUSED
    number = float(text)
    if type_name == "FLOAT" and abs(number) != float("inf"):
        number = _single(text, number)
    return REFUSED if abs(number) == float("inf") else number


def _single(text: str, near: float) -> float:
    """The nearest FLOAT of a number, the even one of two."""
    with np.errstate(over="ignore", under="ignore"):
        middle = np.float32(near)
    if not np.isfinite(middle):
        return float(middle)
    exact = Fraction(text) if len(text) < 400 and abs(near) > 1e-60 else Fraction(near)
    low, high = (np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf))
    found = min(
        (each for each in (low, middle, high) if np.isfinite(each)),
        key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(np.int32)) % 2),
    )
    return float(found) if found or near >= 0 else -0.0


def _decimal(text: str, precision: int, scale: int) -> Any:
    if not _NUMBER.fullmatch(text):
        return REFUSED
    digits, _, exponent = text.lower().partition("e")
    if not digits.strip("+-.0"):
        return Decimal(0).scaleb(-scale)
    if len(exponent.lstrip("+-0")) > 9:
        return REFUSED
    number = _EXACT.create_decimal(text)
    _, kept, power = number.normalize(_EXACT).as_tuple()
    if -int(power) > scale or len(kept) + int(power) > precision - scale:
        return REFUSED
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _time(text: str, type_name: str, zone: str) -> Any:
    match = _TIME.fullmatch(text)
    if match is None or (type_name == "DATE" and match[4]):
        return REFUSED
    fraction = (match[7] or "").ljust(9, "0")
    if fraction[6:] != "000":
        return REFUSED
    numbers = [int(match[i] or 0) for i in range(1, 7)]
    try:
        local = dt.datetime(*numbers, int(fraction[:6]))  # noqa: DTZ001 - local by meaning
    except ValueError:
        return REFUSED
    if type_name == "DATE":
        return local.date()
    offset = (match[8] or "").strip()
    if type_name == "TIMESTAMP_NTZ":
        return REFUSED if offset else local
    try:
        return _shifted(local, offset) if offset else first_instant(local, zone)
    except OverflowError:
        return REFUSED


def _shifted(local: dt.datetime, offset: str) -> Any:
    if offset == "Z":
        return local.replace(tzinfo=dt.UTC)
    hours, minutes = int(offset[1:3]), int(offset[3:].strip(":") or 0)
    east = dt.timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or east > dt.timedelta(hours=18):
        return REFUSED
    return (local - (east if offset[0] == "+" else -east)).replace(tzinfo=dt.UTC)


def first_instant(local: dt.datetime, zone: str) -> Any:
    """The first instant at which the zone's clocks show a time; ``REFUSED`` if there is none."""
    found = []
    for fold in (0, 1):
        instant = local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(dt.UTC)
        if instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0) == local:
            found.append(instant)
    return min(found, default=REFUSED)
