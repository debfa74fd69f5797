"""Texts as DATE."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.landing.reading import REFUSED, value


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-02-29", dt.date(2024, 2, 29)),
        ("0001-01-01", dt.date(1, 1, 1)),
        ("9999-12-31", dt.date(9999, 12, 31)),
        ("2024-2-9", dt.date(2024, 2, 9)),
        (" 2024-02-09 ", dt.date(2024, 2, 9)),
        # Before the Gregorian calendar, too, days are counted by its rules.
        ("1582-10-10", dt.date(1582, 10, 10)),
    ],
)
def test_days_in_iso_8601(text: str, day: dt.date) -> None:
    assert value(text, "DATE") == day


@pytest.mark.parametrize(
    "text", ["2024-13-45", "2023-02-29", "2024-04-31", "2024-00-01", "0000-01-01"]
)
def test_a_day_that_does_not_exist_is_refused(text: str) -> None:
    assert value(text, "DATE") == REFUSED


@pytest.mark.parametrize("text", ["2024-02-09 00:00:00", "2024-02-09T12:30:15Z", "2024-02-09T"])
def test_a_time_behind_the_day_is_refused(text: str) -> None:
    assert value(text, "DATE") == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        *("", "2024", "2024-02", "20240209", "09.02.2024", "2/9/2024", "24-02-09", "02024-02-09"),
        *(
            "-2024-02-09",
            "+2024-02-09",
            "12024-02-09",
            "2024\u201302\u201309",
            "\uff12024-02-09",
            "today",
            "19723",
        ),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    assert value(text, "DATE") == REFUSED
