"""Dates, local times and instants from ISO 8601 texts, by column and one by one.

Imported by executors. pyarrow supports neither daylight saving time after 2037 nor offsets as
zones; Python's ``zoneinfo`` handles these cases. A local time that occurs twice is the earlier
instant, as in Spark; one that a zone skips is not a value.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.landing.records import NotAValue
from spark_jobs.landing.time_patterns import TimeFields, TimePattern

_DAY: Final = r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_TIME: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
)
_ZONE: Final = r"(?: ?(?:(?P<utc>Z)|(?P<sign>[+-])(?P<oh>\d{2})(?::?(?P<om>\d{2}))?))?"
DATE_FORM: Final = TimePattern(re.compile(_DAY, re.ASCII))
TIMESTAMP_FORM: Final = TimePattern(re.compile(f"{_DAY}(?:[T ]{_TIME}{_ZONE})?", re.ASCII))
# A text with an offset ends like this; a date alone does not. Larger offsets are parsed one by one.
_HAS_ZONE: Final = r":[0-9.]+ ?(?:Z|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?)$"
_INSTANT: Final = pa.timestamp("us", "UTC")
_LOCAL: Final = pa.timestamp("us")
# Arrow also accepts a year 0, and an hour without minutes.
_FIRST: Final = dt.date(1, 1, 1)
_LAST: Final = dt.date(9999, 12, 31)
_MOST_OFFSET_HOURS: Final = 18
_DAY_MICROSECONDS: Final = 24 * 60 * 60 * 1_000_000
_HOUR_ALONE: Final = len("2026-01-31T12")
_FIRST_KNOWN: Final = dt.date(1971, 1, 1)
_LAST_KNOWN: Final = dt.date(2036, 12, 31)
_UTC: Final = frozenset({"utc", "gmt", "z", "etc/utc", "utc+0", "gmt+0", "+00:00", "-00:00"})


def reformatted(texts: pa.Array, pattern: TimePattern, *, is_date: bool) -> pa.Array | None:
    """Texts that match a pattern as ISO 8601; None if they must be parsed one by one."""
    replacement = pattern.iso(is_date=is_date)
    if replacement is None:
        return None
    expression = f"^(?:{pattern.expression.pattern})$"
    if not pc.all(pc.match_substring_regex(texts, expression), min_count=0).as_py():
        return None
    return pc.replace_substring_regex(texts, pattern=expression, replacement=replacement)


def dates(texts: pa.Array) -> pa.Array | None:
    """A column of dates; None if the texts must be parsed one by one.

    Raises:
        pa.ArrowInvalid: Arrow cannot parse a text; they must be parsed one by one.
    """
    values = pc.cast(texts, pa.date32())
    return values if _are_within(values, _FIRST, _LAST) else None


def local_times(texts: pa.Array) -> pa.Array | None:
    """A column of times without a zone; returns None and raises as ``dates`` does."""
    if pc.any(pc.equal(pc.binary_length(texts), _HOUR_ALONE)).as_py():
        return None
    values = pc.cast(texts, _LOCAL)
    return values if _are_within(values, _FIRST, _LAST) else None


def instants(texts: pa.Array, zone: str) -> pa.Array | None:
    """A column of instants; returns None and raises as ``dates`` does."""
    try:
        local = local_times(texts)
    except pa.ArrowInvalid:
        return _zoned(texts)
    if local is None or is_utc(zone):
        return None if local is None else local.cast(_INSTANT)
    try:
        offset = zone_of(zone)
    except NotAValue:
        return None
    if isinstance(offset, dt.timezone):
        values = pc.subtract(local, pa.scalar(offset.utcoffset(None))).cast(_INSTANT)
        return values if _are_within(values, _FIRST, _LAST) else None
    if not _are_within(local, _FIRST_KNOWN, _LAST_KNOWN):
        return None
    # A time in a gap raises; parsing one by one then finds the text.
    return pc.assume_timezone(local, zone, ambiguous="earliest").cast(_INSTANT)


def _zoned(texts: pa.Array) -> pa.Array | None:
    """The instants of texts that all have an offset; None if one has none or is out of range."""
    if not pc.all(pc.match_substring_regex(texts, _HAS_ZONE), min_count=0).as_py():
        return None
    values = pc.cast(texts, _INSTANT)
    return values if _are_within(values, _FIRST, _LAST) else None


def _are_within(values: pa.Array, first: dt.date, last: dt.date) -> bool:
    """Whether dates, or times in microseconds, are from ``first`` to ``last``, both inclusive."""
    bounds = pc.min_max(values)
    if not bounds["min"].is_valid:
        return True
    per_day = 1 if pa.types.is_date(values.type) else _DAY_MICROSECONDS
    lowest, highest = (bounds[end].value // per_day for end in ("min", "max"))
    epoch = dt.date(1970, 1, 1).toordinal()
    return bool(first.toordinal() - epoch <= lowest and highest <= last.toordinal() - epoch)


def date_of(found: TimeFields) -> dt.date:
    """A date; raises ``NotAValue``, also if a time that follows it does not exist."""
    return local_time_of(found).date()


def local_time_of(found: TimeFields) -> dt.datetime:
    """A time without a zone; raises ``NotAValue``."""
    try:
        return dt.datetime(*found[:7])  # noqa: DTZ001 - local by meaning
    except ValueError as error:
        raise NotAValue(str(error)) from None


def instant_of(found: TimeFields, zone: str) -> dt.datetime:
    """The instant of a time with an offset, or in ``zone``; raises ``NotAValue``."""
    local = local_time_of(found)
    try:
        if found.offset is not None:
            zoned = local.replace(tzinfo=dt.timezone(dt.timedelta(seconds=found.offset)))
            return zoned.astimezone(dt.UTC)
        aware = local.replace(tzinfo=zone_of(zone))
        instant = aware.astimezone(dt.UTC)
        if instant.astimezone(aware.tzinfo).replace(tzinfo=None) != local:
            raise NotAValue(f"clocks in {zone} were put forward past it")
    except OverflowError:
        raise NotAValue("it lies beyond the years 1 to 9999") from None
    return instant


@functools.cache
def zone_of(name: str) -> dt.tzinfo:
    """The time zone of a name in the tz database, or of an offset.

    Raises:
        NotAValue: this machine does not know the zone.
    """
    if is_utc(name):
        return dt.UTC
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::(\d{2}))?", name)
    if offset and int(offset[2]) <= _MOST_OFFSET_HOURS:
        hours, minutes, seconds = (int(each or 0) for each in offset.groups()[1:])
        east = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(east if offset[1] == "+" else -east)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise NotAValue(f"the time zone {name} is not known to this machine") from None


def is_utc(zone: str) -> bool:
    """Whether a zone is one of the names of UTC."""
    return zone.lower() in _UTC
