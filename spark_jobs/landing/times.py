"""Dates, local times and instants from texts in ISO 8601, by column and one by one.

Imported by executors. pyarrow knows no daylight saving time after 2037 and no offsets as zones, so
it is asked only for what it knows; Python's ``zoneinfo`` says the rest. A local time that occurs
twice is the earlier instant, as in Spark; one that a zone leaves out is not a value.
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
# A text with one ends like this; a date alone does not.
_HAS_ZONE: Final = r":[0-9.]+ ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_INSTANT: Final = pa.timestamp("us", "UTC")
_LOCAL: Final = pa.timestamp("us")
_FIRST_KNOWN: Final = dt.datetime(1971, 1, 1)  # noqa: DTZ001 - local by meaning
_LAST_KNOWN: Final = dt.datetime(2037, 1, 1)  # noqa: DTZ001
_UTC: Final = frozenset({"utc", "gmt", "z", "etc/utc", "utc+0", "gmt+0", "+00:00", "-00:00"})


def dates(texts: pa.Array) -> pa.Array:
    """A column of dates.

    Raises:
        pa.ArrowInvalid: a text needs a closer look.
    """
    return pc.cast(texts, pa.date32())


def local_times(texts: pa.Array) -> pa.Array:
    """A column of times without a zone; raises as ``dates``."""
    return pc.cast(texts, _LOCAL)


def instants(texts: pa.Array, zone: str) -> pa.Array | None:
    """A column of instants; None, and raises as ``dates``, where texts need a closer look."""
    has_zone = pc.match_substring_regex(texts, _HAS_ZONE)
    if pc.all(has_zone, min_count=0).as_py():
        return pc.cast(texts, _INSTANT)
    if pc.any(has_zone).as_py():
        return None
    local = pc.cast(texts, _LOCAL)
    if is_utc(zone):
        return local.cast(_INSTANT)
    bounds = pc.min_max(local)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is not None and not _FIRST_KNOWN <= first <= last < _LAST_KNOWN:
        return None
    # Gaps are an error, which a closer look tells by text.
    return pc.assume_timezone(local, zone, ambiguous="earliest").cast(_INSTANT)


def date_of(found: TimeFields) -> dt.date:
    """A day; raises ``NotAValue``."""
    try:
        return dt.date(found.year, found.month, found.day)
    except ValueError as error:
        raise NotAValue(str(error)) from None


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
    """The zone of Spark's session: a name of the tz database, or an offset.

    Raises:
        NotAValue: this machine does not know it.
    """
    if is_utc(name):
        return dt.UTC
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    if offset:
        seconds = int(offset[2]) * 3600 + int(offset[3] or 0) * 60
        return dt.timezone(dt.timedelta(seconds=seconds if offset[1] == "+" else -seconds))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise NotAValue(f"the time zone {name} is not known to this machine") from None


def is_utc(zone: str) -> bool:
    """Whether a zone is UTC by one of its names."""
    return zone.lower() in _UTC
