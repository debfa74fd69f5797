"""Durations (``7 d``, ``30 min``) in parameters and Paimon's options, and points in time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,12})\s*([a-zA-Zµ]*)")
# Milliseconds per unit, by all names of the unit (Paimon's TimeUtils).
_UNITS: Final = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
}


def parse_duration(text: str) -> timedelta:
    """The duration in a text of a number and a unit, from days to milliseconds.

    Raises:
        ValueError: the text is not a duration, has no unit, or exceeds ``timedelta``.
    """
    if text.strip().isdecimal():
        raise ValueError(f"{text!r} has no unit: write {text.strip()} d, h, min, s or ms")
    return parse_option(text)


def parse_option(text: str) -> timedelta:
    """The duration in a table option; without a unit in milliseconds, as in Paimon.

    Raises:
        ValueError: the text is not a duration, or exceeds ``timedelta``.
    """
    match = _FORM.fullmatch(text.strip())
    milliseconds = _UNITS.get(match[2].lower()) if match else None
    if match is None or milliseconds is None:
        raise ValueError(f"{text!r} is not a duration such as 7 d, 12 h or 30 min")
    try:
        return timedelta(milliseconds=int(match[1]) * milliseconds)
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None


def duration_text(seconds: float) -> str:
    """A duration for people, in its largest unit: ``2 d``, ``1.5 h``, ``45 s``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def before(now: datetime, duration: timedelta) -> datetime:
    """The time ``duration`` before ``now``, but not before the earliest ``datetime``."""
    try:
        return now - duration
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def parse_limit(text: str, now: datetime) -> datetime:
    """The time that a text gives as a duration before ``now`` or a timestamp with an offset.

    Raises:
        ValueError: the text is neither.
    """
    if _FORM.fullmatch(text.strip()):
        return before(now, parse_duration(text))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a duration such as 7 d nor a timestamp such as "
            "2026-01-31T00:00:00+00:00"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} is a timestamp without an offset such as Z or +01:00")
    return moment.astimezone(UTC)
