"""Patterns of dates and times (``dd.MM.yyyy HH:mm:ss``), as in Java's ``DateTimeFormatter``.

Supports the letters that are common in Spark's options ``dateFormat`` and ``timestampFormat``; any
other letter is refused by name. Imported by executors.
"""

from __future__ import annotations

import datetime as dt
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
_MOST_OFFSET_MINUTES: Final = 18 * 60
# What a letter matches, by the letter and the number of its repetitions.
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
    **{("E", c): f"(?P<weekday>{'|'.join(name[:3] for name in _DAYS)})" for c in (1, 2, 3)},
    ("E", 4): f"(?P<weekday>{'|'.join(_DAYS)})",
    ("X", 1): f"(?P<zone>(?P<utc>Z)|{_OFFSET}{_MINUTES}?)",
    ("X", 2): f"(?P<zone>(?P<utc>Z)|{_OFFSET}{_MINUTES})",
    ("X", 3): f"(?P<zone>(?P<utc>Z)|{_OFFSET}:{_MINUTES})",
    ("x", 1): f"(?P<zone>{_OFFSET}{_MINUTES}?)",
    ("x", 2): f"(?P<zone>{_OFFSET}{_MINUTES})",
    ("x", 3): f"(?P<zone>{_OFFSET}:{_MINUTES})",
    **{("Z", count): f"(?P<zone>{_OFFSET}{_MINUTES})" for count in (1, 2, 3)},
}
_SAME: Final = ({"year", "short"}, {"month", "name"}, {"hour", "half"})
# The fields of ISO 8601, and the parts of the zone.
_DAY: Final = frozenset({"year", "month", "day"})
_WRITTEN: Final = _DAY | {"hour", "minute", "second", "fraction", "zone"}
_ISO_FIELDS: Final = _WRITTEN | {"utc", "sign", "oh", "om"}
# Fields of variable length, optional parts, and fractions that are too long for Arrow.
_VARIES: Final = re.compile(r"\{1,|\(\?:|\{[789]\}")
_REMEDY: Final = (
    "Declare the column as STRING in the source's schema and use to_date or to_timestamp in a "
    "query over the source."
)


class TimeFields(NamedTuple):
    """The fields of a time in a text; ``offset`` in seconds east of UTC, None if there is none."""

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
    """A pattern as a regular expression over the whole text. Picklable.

    ``is_fixed``: each field has as many digits as in ISO 8601.
    """

    expression: re.Pattern[str]
    is_fixed: bool = False

    @classmethod
    def of(cls, option: str, pattern: str) -> TimePattern:
        """The pattern in the option ``option`` of a source.

        Raises:
            NotSupportedError: the pattern has an unsupported letter, no year, a repeated field, an
                unclosed bracket or quote, or only one of h and a.
        """
        expression = "".join(_parts(option, pattern))
        try:
            compiled = re.compile(expression, re.IGNORECASE | re.ASCII)
        except re.error:
            compiled = None
        names = set(compiled.groupindex) if compiled else set()
        if compiled is None or any(names >= pair for pair in _SAME):
            raise NotSupportedError(
                f"{option}: {pattern!r} names a field twice, or does not close a bracket.", _REMEDY
            )
        if not names & {"year", "short"}:
            raise NotSupportedError(f"{option}: {pattern!r} names no year.", _REMEDY)
        if ("half" in names) != ("noon" in names):
            raise NotSupportedError(
                f"{option}: {pattern!r} has only one of h and a.", "Hours from 0 to 23 are H."
            )
        is_fixed = names <= _ISO_FIELDS and not _VARIES.search(expression) and expression.isascii()
        return cls(compiled, is_fixed)

    def fields(self, text: str) -> TimeFields | None:
        """The fields in ``text``; None if it does not match the pattern.

        Raises:
            NotAValue: it has fractions of a microsecond, invalid fields, or the wrong weekday.
        """
        match = self.expression.fullmatch(text)
        if match is None:
            return None
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        fields = TimeFields(
            year=_year(parts),
            month=_month(parts),
            day=int(parts.get("day", 1)),
            hour=_hour(parts),
            minute=int(parts.get("minute", 0)),
            second=int(parts.get("second", 0)),
            microsecond=_microsecond(parts.get("fraction", "")),
            offset=_offset(parts),
        )
        _check_weekday(fields, parts.get("weekday"))
        return fields

    def iso(self, *, is_date: bool) -> str | None:
        """The RE2 replacement that turns a matching text into ISO 8601; None if there is none."""
        groups = self.expression.groupindex
        if not self.is_fixed or max(groups[name] for name in groups if name in _WRITTEN) > 9:
            return None

        def field(name: str, before: str, default: str) -> str:
            return before + (f"\\{groups[name]}" if name in groups else default)

        day = field("year", "", "") + field("month", "-", "01") + field("day", "-", "01")
        if is_date:
            return day if groups.keys() <= _DAY else None
        time = field("hour", "T", "00") + field("minute", ":", "00") + field("second", ":", "00")
        fraction = field("fraction", ".", "") if "fraction" in groups else ""
        return day + time + fraction + field("zone", "", "")


def _parts(option: str, pattern: str) -> list[str]:
    parts = []
    if pattern.count("'") % 2:
        raise NotSupportedError(f"{option}: {pattern!r} does not close a quote.", _REMEDY)
    # Quoted text is at odd indexes; '' is a quote.
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


def _year(found: dict[str, str]) -> int:
    if "short" in found:
        return 2000 + int(found["short"])
    if "year" not in found:
        raise NotAValue("it has no year")
    return int(found["year"])


def _month(found: dict[str, str]) -> int:
    if "name" not in found:
        return int(found.get("month", 1))
    return next(i for i, name in enumerate(_MONTHS, 1) if name[:3] == found["name"][:3].lower())


def _hour(found: dict[str, str]) -> int:
    if "half" not in found:
        return int(found.get("hour", 0))
    half = int(found["half"])
    if not 1 <= half <= 12 or "noon" not in found:
        raise NotAValue
    return half % 12 + (12 if found["noon"].lower() == "pm" else 0)


def _check_weekday(fields: TimeFields, name: str | None) -> None:
    if name is None:
        return
    try:
        actual = _DAYS[dt.date(fields.year, fields.month, fields.day).weekday()]
    except ValueError:
        raise NotAValue from None
    if not actual.startswith(name.lower()):
        raise NotAValue(f"it is a {actual.capitalize()}")


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
    if hours * 60 + minutes > _MOST_OFFSET_MINUTES or minutes > 59:
        raise NotAValue
    return (hours * 3600 + minutes * 60) * (1 if found["sign"] == "+" else -1)
