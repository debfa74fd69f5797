"""Times without an offset, in the zones of sessions."""

# ruff: noqa: DTZ001 - local times by meaning

from __future__ import annotations

import datetime as dt
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from spark_jobs.landing.values import TextRules, parsed, value_of
from tests.landing.casts import cast
from tests.landing.reading import REFUSED, kind_of, value

ZONES = [
    *("Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Asia/Kolkata"),
    *("Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca"),
]


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("UTC", "2024-07-01T12:00:00"),
        ("Europe/Berlin", "2024-07-01T10:00:00"),
        ("America/New_York", "2024-07-01T16:00:00"),
        ("Asia/Tokyo", "2024-07-01T03:00:00"),
        ("Asia/Kolkata", "2024-07-01T06:30:00"),
        ("+02:00", "2024-07-01T10:00:00"),
        ("-0530", "2024-07-01T17:30:00"),
        ("GMT+3", "2024-07-01T09:00:00"),
        ("UTC-08:00", "2024-07-01T20:00:00"),
        ("+01:00:30", "2024-07-01T10:59:30"),
        ("Etc/GMT+5", "2024-07-01T17:00:00"),
    ],
)
def test_a_time_without_an_offset_is_of_the_session_s_zone(zone: str, instant: str) -> None:
    found = value("2024-07-01 12:00:00", "TIMESTAMP", TextRules(zone))

    assert found == dt.datetime.fromisoformat(f"{instant}Z")


@pytest.mark.parametrize("year", [2024, 2050])
def test_a_time_that_the_zone_leaves_out_is_refused(year: int) -> None:
    day = {2024: 31, 2050: 27}[year]
    rules = TextRules("Europe/Berlin")

    assert value(f"{year}-03-{day} 01:59:59", "TIMESTAMP", rules) != REFUSED
    assert value(f"{year}-03-{day} 02:30:00", "TIMESTAMP", rules) == REFUSED
    assert value(f"{year}-03-{day} 03:00:00", "TIMESTAMP", rules) != REFUSED
    assert value(f"{year}-03-{day} 02:30:00", "TIMESTAMP_NTZ", rules) != REFUSED


def test_a_whole_day_that_the_zone_leaves_out_is_refused() -> None:
    assert value("2011-12-30 12:00:00", "TIMESTAMP", TextRules("Pacific/Apia")) == REFUSED


@pytest.mark.parametrize(("year", "day"), [(2024, 27), (2050, 30)])
def test_a_time_that_occurs_twice_is_the_earlier_instant(year: int, day: int) -> None:
    found = value(f"{year}-10-{day} 02:30:00", "TIMESTAMP", TextRules("Europe/Berlin"))

    assert found == dt.datetime(year, 10, day, 0, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        # Summer time goes on after 2037.
        ("2060-07-01 12:00:00", "2060-07-01T10:00:00"),
        ("2060-01-01 12:00:00", "2060-01-01T11:00:00"),
        # Before zones were made, clocks showed the place's own time: 53 minutes and 28 seconds.
        ("1890-01-01 12:00:00", "1890-01-01T11:06:32"),
        ("1970-06-01 12:00:00", "1970-06-01T11:00:00"),
        ("1945-06-01 12:00:00", "1945-06-01T09:00:00"),
    ],
)
def test_years_far_away(text: str, instant: str) -> None:
    found = value(text, "TIMESTAMP", TextRules("Europe/Berlin"))

    assert found == dt.datetime.fromisoformat(f"{instant}Z")


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Olympus"):
        value_of("2024-07-01 12:00:00", kind_of("TIMESTAMP"), TextRules("Mars/Olympus"))


@pytest.mark.parametrize("zone", ["+19:00", "+99:00", "../etc/passwd", ""])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    assert value("2024-07-01 12:00:00", "TIMESTAMP", TextRules(zone)) == REFUSED


@pytest.mark.parametrize("zone", ZONES)
def test_columns_are_read_as_single_values_are(zone: str) -> None:
    chance = random.Random(zone)
    first, last = dt.datetime(1850, 1, 1), dt.datetime(2100, 1, 1)
    seconds = int((last - first).total_seconds())
    texts = [str(first + dt.timedelta(seconds=chance.randrange(seconds))) for _ in range(1000)]
    texts += [str(moment) for moment in _around_changes(zone)]
    rules, kind = TextRules(zone), kind_of("TIMESTAMP")

    together = parsed(pa.array(texts), kind, rules)

    expected = [cast(text, "TIMESTAMP", zone) for text in texts]
    assert together.values.to_pylist() == [None if each == REFUSED else each for each in expected]


def _around_changes(zone: str) -> list[dt.datetime]:
    """Local times around the changes of some years, by quarters of an hour."""
    found = []
    for year in (1950, 1980, 2010, 2036, 2037, 2038, 2060):
        moment, end = dt.datetime(year, 1, 1), dt.datetime(year + 1, 1, 1)
        before = None
        while moment < end:
            offset = moment.replace(tzinfo=ZoneInfo(zone)).utcoffset()
            if before is not None and offset != before:
                found += [moment + dt.timedelta(minutes=15 * i) for i in range(-100, 12)]
            before = offset
            moment += dt.timedelta(hours=6)
    return found
