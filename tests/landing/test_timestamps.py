"""Texts as TIMESTAMP and TIMESTAMP_NTZ."""

# ruff: noqa: DTZ001 - local times by meaning

from __future__ import annotations

import datetime as dt

import pytest

from spark_jobs.landing.values import TextRules
from tests.landing.reading import REFUSED, value

NOON = dt.datetime(2024, 7, 1, 12, 30, 15)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-07-01T12:30:15", NOON),
        ("2024-07-01 12:30:15", NOON),
        ("2024-07-01 12:30", NOON.replace(second=0)),
        ("2024-07-01", dt.datetime(2024, 7, 1)),
        ("2024-7-1 2:30:15", dt.datetime(2024, 7, 1, 2, 30, 15)),
        (" 2024-07-01 12:30:15 ", NOON),
        ("2024-07-01 12:30:15.5", NOON.replace(microsecond=500000)),
        ("2024-07-01 12:30:15.000001", NOON.replace(microsecond=1)),
        ("2024-07-01 12:30:15.123456000", NOON.replace(microsecond=123456)),
        ("0001-01-01 00:00:00", dt.datetime(1, 1, 1)),
        ("9999-12-31 23:59:59.999999", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ("1582-10-10 12:00:00", dt.datetime(1582, 10, 10, 12)),
    ],
)
def test_times_in_iso_8601(text: str, time: dt.datetime) -> None:
    assert value(text, "TIMESTAMP_NTZ") == time
    assert value(text, "TIMESTAMP") == time.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("offset", "hours"),
    [
        *(("Z", 0), (" Z", 0), ("+02:00", 2), ("+0200", 2), ("+02", 2), (" +02:00", 2)),
        *(("-05:30", -5.5), ("+18:00", 18), ("-18:00", -18), ("-00:00", 0)),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_an_offset_says_which_instant_it_is_in_every_zone(
    offset: str, hours: float, zone: str
) -> None:
    found = value(f"2024-07-01T12:30:15{offset}", "TIMESTAMP", TextRules(zone))

    assert found == NOON.replace(tzinfo=dt.UTC) - dt.timedelta(hours=hours)


@pytest.mark.parametrize("offset", ["Z", "+02:00", "+0200", "+02", "-05:30"])
def test_a_time_without_a_zone_has_no_offset(offset: str) -> None:
    assert value(f"2024-07-01T12:30:15{offset}", "TIMESTAMP_NTZ") == REFUSED


@pytest.mark.parametrize("type_name", ["TIMESTAMP", "TIMESTAMP_NTZ"])
@pytest.mark.parametrize("fraction", ["1234567", "123456001", "0000000001", "0000000000"])
def test_parts_of_a_microsecond_are_never_cut_off(type_name: str, fraction: str) -> None:
    assert value(f"2024-07-01T12:30:15.{fraction}", type_name) == REFUSED


@pytest.mark.parametrize("type_name", ["TIMESTAMP", "TIMESTAMP_NTZ"])
@pytest.mark.parametrize(
    "text",
    [
        *("", "2024-07-01 25:00:00", "2024-07-01 24:00:00", "2024-07-01 12:60:00"),
        *("2024-07-01 12:30:60", "2024-02-30 12:00:00", "0000-01-01 00:00:00", "2024-07-01 12"),
        *("2024-07-01T12", "2024-07-01T12Z", "2024-07-01Z", "2024-07-01 12:30:15.", "2024-07-01T"),
        *("2024-07-01 12:30:15,5", "2024-07-01  12:30:15", "2024-07-01t12:30:15"),
        *("2024-07-01T12:30:15z", "2024-07-01T12:30:15 UTC", "2024-07-01T12:30:15+19:00"),
        *("2024-07-01T12:30:15+18:01", "2024-07-01T12:30:15+02:60", "2024-07-01T12:30:15+2"),
        *("2024-07-01 12:30:15 Europe/Berlin", "20240701T123015", "1719837015", "12:30:15", "now"),
    ],
)
def test_any_other_text_is_refused(text: str, type_name: str) -> None:
    assert value(text, type_name) == REFUSED


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_an_instant_before_year_1_or_after_9999_is_refused(text: str) -> None:
    assert value(text, "TIMESTAMP") == REFUSED
