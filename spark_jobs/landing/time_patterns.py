"""Patterns of dates and times (``dd.MM.yyyy HH:mm:ss``), as Java's ``DateTimeFormatter`` has them.

The letters that Spark's options ``dateFormat`` and ``timestampFormat`` are mostly made of; any
other is refused by name. Imported by executors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.records import NotAValue

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OFFSET: Final = r"(?P<sign>[+-])(?P<oh>\d{2})"
_MINUTES: Final = r"(?P<om>\d{2})"
# Letter and how often it stands there: what it matches. Any number of letters: 0.
_PARTS: Final = {
    ("y", 4): r"(?P<year>\d{4})",
    ("y", 1): r"(?P<year>\d{1,4})",
    ("y", 2): r"(?P<short>\d{2})",
    ("M", 1): r"(?P<month>\d{1,2})",
    ("M", 2): r"(?P<month>\d{2})",
    ("M", 3): f"(?P<name>{'|'.join(name[:3] for name in _MONTHS)})",
    ("M", 4): f"(?P<name>{'|'.join(_MONTHS)})",
    ("d", 1): r"(?P<day>\d{1,2})",
    ("d", 2): r"(?P<day>\d{2})",
    ("H", 1): r"(?P<hour>\d{1,2})",
    ("H", 2): r"(?P<hour>\d{2})",
    ("h", 1): r"(?P<half>\d{1,2})",
    ("h", 2): r"(?P<half>\d{2})",
    ("m", 1): r"(?P<minute>\d{1,2})",
    ("m", 2): r"(?P<minute>\d{2})",
    ("s", 1): r"(?P<second>\d{1,2})",
    ("s", 2): r"(?P<second>\d{2})",
    ("a", 1): "(?P<noon>am|pm)",
    ("E", 1): f"(?:{'|'.join(name[:3] for name in _DAYS)})",
    ("E", 3): f"(?:{'|'.join(name[:3] for name in _DAYS)})",
    ("E", 4): f"(?:{'|'.join(_DAYS)})",
    ("X", 1): f"(?:(?P<utc>Z)|{_OFFSET}{_MINUTES}?)",
    ("X", 2): f"(?:(?P<utc>Z)|{_OFFSET}{_MINUTES})",
    ("X", 3): f"(?:(?P<utc>Z)|{_OFFSET}:{_MINUTES})",
    ("x", 1): f"{_OFFSET}{_MINUTES}?",
    ("x", 2): f"{_OFFSET}{_MINUTES}",
    ("x", 3): f"{_OFFSET}:{_MINUTES}",
    ("Z", 1): f"{_OFFSET}{_MINUTES}",
    ("Z", 3): f"{_OFFSET}{_MINUTES}",
}
_REMEDY: Final = (
    "Declare the column as STRING in the source's schema and use to_date or to_timestamp in a "
    "query over the source."
)


class TimeFields(NamedTuple):
    """What a text says of a time; ``offset`` in seconds east of UTC, None where it says none."""

    year: int
    month: int = 1
    day: int = 1
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern as a regular expression over the whole text. Picklable."""

    expression: re.Pattern[str]

    @classmethod
    def of(cls, option: str, pattern: str) -> TimePattern:
        """The pattern that the option ``option`` of a source gives.

        Raises:
            NotSupportedError: a letter that is not known here, or no year.
        """
        expression = "".join(_parts(option, pattern))
        if not re.search(r"\?P<(?:year|short)>", expression):
            raise NotSupportedError(f"{option}: {pattern!r} names no year.", _REMEDY)
        try:
            return cls(re.compile(expression, re.IGNORECASE | re.ASCII))
        except re.error:
            raise NotSupportedError(
                f"{option}: {pattern!r} names a field twice, or does not close a bracket.", _REMEDY
            ) from None

    def fields(self, text: str) -> TimeFields | None:
        """What ``text`` says; None if it has another form.

        Raises:
            NotAValue: parts of a microsecond.
        """
        match = self.expression.fullmatch(text)
        if match is None:
            return None
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        return TimeFields(
            year=2000 + int(found["short"]) if "short" in found else int(found["year"]),
            month=_month(found),
            day=int(found.get("day", 1)),
            hour=_hour(found),
            minute=int(found.get("minute", 0)),
            second=int(found.get("second", 0)),
            microsecond=_microsecond(found.get("fraction", "")),
            offset=_offset(found),
        )


def _parts(option: str, pattern: str) -> list[str]:
    parts = []
    # Quoted text at odd places; '' is a quote.
    for index, piece in enumerate(re.split(r"'((?:[^']|'')*)'", pattern)):
        if index % 2:
            parts.append(re.escape(piece.replace("''", "'") or "'"))
            continue
        for letter, run in groupby(piece):
            count = len(list(run))
            parts.append(_part(option, pattern, letter, count))
    return parts


def _part(option: str, pattern: str, letter: str, count: int) -> str:
    if letter == "[":
        return "(?:" * count
    if letter == "]":
        return ")?" * count
    if not (letter.isascii() and letter.isalpha()):
        return re.escape(letter) * count
    if letter == "S" and count <= 9:
        return rf"(?P<fraction>\d{{{count}}})"
    letter = {"u": "y", "L": "M"}.get(letter, letter)
    if (letter, count) not in _PARTS:
        raise NotSupportedError(
            f"{option}: {letter * count} in {pattern!r} is not supported.", _REMEDY
        )
    return _PARTS[letter, count]


def _month(found: dict[str, str]) -> int:
    if "name" not in found:
        return int(found.get("month", 1))
    return next(i for i, name in enumerate(_MONTHS, 1) if name[:3] == found["name"][:3].lower())


def _hour(found: dict[str, str]) -> int:
    if "half" not in found:
        return int(found.get("hour", 0))
    half = int(found["half"])
    if not 1 <= half <= 12:
        raise NotAValue
    return half % 12 + (12 if found.get("noon", "am").lower() == "pm" else 0)


def _microsecond(fraction: str) -> int:
    if fraction[6:].strip("0"):
        raise NotAValue("it has parts of a microsecond")
    return int(fraction[:6].ljust(6, "0"))


def _offset(found: dict[str, str]) -> int | None:
    if "utc" in found:
        return 0
    if "sign" not in found:
        return None
    hours, minutes = int(found["oh"]), int(found.get("om", 0))
    if hours > 18 or minutes > 59:
        raise NotAValue
    return (hours * 3600 + minutes * 60) * (1 if found["sign"] == "+" else -1)
