"""dateFormat, timestampFormat, timestampNTZFormat: the letters that are known, and all others."""

# ruff: noqa: DTZ001 - local times by meaning

from __future__ import annotations

import datetime as dt
import pickle
import random

import pyarrow as pa
import pytest

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.time_patterns import TimePattern
from spark_jobs.landing.values import TextRules, parsed
from tests.landing.reading import REFUSED, kind_of, value

LETTERS = [
    ("yyyy-MM-dd", "2024-07-01", "2024-07-01"),
    ("uuuu-LL-dd", "2024-07-01", "2024-07-01"),
    ("y-M-d", "2024-7-1", "2024-07-01"),
    ("y-M-d", "2024-12-31", "2024-12-31"),
    ("dd.MM.yyyy", "01.07.2024", "2024-07-01"),
    ("MM/dd/yy", "07/01/24", "2024-07-01"),
    ("yyyyMMdd", "20240701", "2024-07-01"),
    ("d MMM yyyy", "1 Jul 2024", "2024-07-01"),
    ("d MMM yyyy", "1 JUL 2024", "2024-07-01"),
    ("d MMMM yyyy", "1 July 2024", "2024-07-01"),
    ("d LLLL yyyy", "1 may 2024", "2024-05-01"),
    ("E, d MMM yyyy", "Mon, 1 Jul 2024", "2024-07-01"),
    ("EEE, d MMM yyyy", "Mon, 1 Jul 2024", "2024-07-01"),
    ("EEEE, d MMM yyyy", "Monday, 1 Jul 2024", "2024-07-01"),
    ("yyyy-MM", "2024-07", "2024-07-01"),
    ("yyyy", "2024", "2024-01-01"),
    ("yyyy-MM-dd['T'HH:mm]", "2024-07-01", "2024-07-01"),
    ("yyyy-MM-dd HH:mm:ss", "2024-07-01 23:59:58", "2024-07-01T23:59:58"),
    ("yyyy-MM-dd H:m:s", "2024-07-01 3:4:5", "2024-07-01T03:04:05"),
    ("yyyy-MM-dd hh:mm a", "2024-07-01 12:30 AM", "2024-07-01T00:30"),
    ("yyyy-MM-dd h:mm a", "2024-07-01 1:30 pm", "2024-07-01T13:30"),
    ("yyyy-MM-dd hh:mm a", "2024-07-01 12:30 PM", "2024-07-01T12:30"),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2024-07-01 12:30:15.250", "2024-07-01T12:30:15.25"),
    ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-07-01 12:30:15.000001", "2024-07-01T12:30:15.000001"),
    (
        "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
        "2024-07-01 12:30:15.000001000",
        "2024-07-01T12:30:15.000001",
    ),
    ("yyyy-MM-dd HH:mm:ss[.SSS]", "2024-07-01 12:30:15", "2024-07-01T12:30:15"),
    ("yyyy-MM-dd HH:mm:ss[.SSS]", "2024-07-01 12:30:15.5", REFUSED),
    ("yyyyMMddHHmmss", "20240701123015", "2024-07-01T12:30:15"),
    ("'on' yyyy-MM-dd 'at' HH 'o''clock'", "on 2024-07-01 at 12 o'clock", "2024-07-01T12:00"),
    ("yyyy-MM-dd''HH", "2024-07-01'12", "2024-07-01T12:00"),
    ("yyyy-MM-dd'T'HH:mm:ss'Z'", "2024-07-01T12:30:15Z", "2024-07-01T12:30:15"),
]
OFFSETS = [
    *(("X", "Z", 0), ("X", "+02", 2), ("X", "-0530", -5.5), ("XX", "+0200", 2), ("XX", "Z", 0)),
    *(("XXX", "+02:00", 2), ("XXX", "Z", 0), ("XXX", "-18:00", -18), ("x", "+02", 2)),
    *(("xx", "+0000", 0), ("xxx", "+05:30", 5.5), ("Z", "+0200", 2), ("ZZ", "-0100", -1)),
    ("ZZZ", "-0530", -5.5),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), LETTERS)
def test_letters(pattern: str, text: str, expected: str) -> None:
    rules = TextRules(timestamp_ntz=TimePattern.of("timestampNTZFormat", pattern))

    found = value(text, "TIMESTAMP_NTZ", rules)

    assert found == (REFUSED if expected == REFUSED else dt.datetime.fromisoformat(expected))


@pytest.mark.parametrize(("letters", "offset", "hours"), OFFSETS)
def test_letters_of_offsets(letters: str, offset: str, hours: float) -> None:
    pattern = TimePattern.of("timestampFormat", f"dd.MM.yyyy HH:mm{letters}")

    found = value(
        f"01.07.2024 12:30{offset}", "TIMESTAMP", TextRules("Asia/Tokyo", timestamp=pattern)
    )

    noon = dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.UTC)
    assert found == noon - dt.timedelta(hours=hours)


@pytest.mark.parametrize("pattern", ["dd.MM.yyyy", "d.M.yyyy", "dd.MM.yyyy[ HH:mm]"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "2024-07-01",
            "1.7.24",
            "32.07.2024",
            "01.13.2024",
            "01.07.0000",
            "01.07.2024x",
            "x01.07.2024",
        ),
        *("", "01/07/2024", "01.07.2024 25:00", "0107.2024", "01.07.2024\n01.07.2024"),
    ],
)
def test_a_text_of_another_form_is_refused(pattern: str, text: str) -> None:
    rules = TextRules(date=TimePattern.of("dateFormat", pattern))

    assert value(text, "DATE", rules) == REFUSED


def test_a_literal_z_is_text_and_no_zone() -> None:
    pattern = TimePattern.of("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss'Z'")

    found = value(
        "2024-07-01T12:30:15Z", "TIMESTAMP", TextRules("Europe/Berlin", timestamp=pattern)
    )

    assert found == dt.datetime(2024, 7, 1, 10, 30, 15, tzinfo=dt.UTC)


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd HH:mm", "yyyy-MM-dd H:m"])
def test_a_date_s_pattern_may_have_a_time(pattern: str) -> None:
    rules = TextRules(date=TimePattern.of("dateFormat", pattern))

    assert value("2024-07-01 23:59", "DATE", rules) == dt.date(2024, 7, 1)
    assert value("2024-07-01 24:00", "DATE", rules) == REFUSED


def test_a_weekday_that_is_another_one_is_refused() -> None:
    rules = TextRules(date=TimePattern.of("dateFormat", "EEE yyyy-MM-dd"))

    assert value("Mon 2024-07-01", "DATE", rules) == dt.date(2024, 7, 1)
    assert value("Tue 2024-07-01", "DATE", rules) == REFUSED
    assert value("Mon 2024-02-30", "DATE", rules) == REFUSED


def test_a_year_that_the_text_leaves_out_is_refused() -> None:
    rules = TextRules(date=TimePattern.of("dateFormat", "MM-dd[-yyyy]"))

    assert value("07-01-2024", "DATE", rules) == dt.date(2024, 7, 1)
    assert value("07-01", "DATE", rules) == REFUSED


def test_a_half_day_that_the_text_leaves_out_is_refused() -> None:
    rules = TextRules(timestamp=TimePattern.of("timestampFormat", "yyyy-MM-dd hh:mm[ a]"))

    assert value("2024-07-01 01:30", "TIMESTAMP", rules) == REFUSED


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "yyyy-MM-dd VV",
            "yyyy-MM-dd z",
            "YYYY-MM-dd",
            "yyyy-DDD",
            "yyyy-'W'ww",
            "yyyy-MM-dd KK a",
        ),
        *("yyyy-MM-dd kk", "yyyy QQQ", "G yyyy", "yyyyy-MM-dd", "yyyy-MMMMM-dd", "yyyy-MM-ddd"),
        *(
            "yyyy-MM-dd HHH",
            "yyyy SSSSSSSSSS",
            "yyyy-MM-dd B",
            "yyyy XXXX",
            "yyyy-MM-dd EEEEE",
            "é T",
        ),
        *("HH:mm", "MM-dd", "", "''"),
        *("yyyy-MM-dd[", "yyyy]-MM", "[yyyy-MM-dd", "yyyy'T", "yyyy-MM-dd''' HH"),
        *("yyyy yyyy", "yyyy yy", "MM MMM yyyy", "HH hh a yyyy", "yyyy X XX"),
        *("yyyy-MM-dd hh:mm", "yyyy-MM-dd HH:mm a"),
    ],
)
def test_other_patterns_are_refused_with_the_option_that_gives_them(pattern: str) -> None:
    with pytest.raises(NotSupportedError, match="dateFormat"):
        TimePattern.of("dateFormat", pattern)


def test_a_pattern_can_be_pickled() -> None:
    pattern = TimePattern.of("dateFormat", "dd.MM.yyyy")

    assert pickle.loads(pickle.dumps(pattern)) == pattern


@pytest.mark.parametrize(
    ("pattern", "form"),
    [
        ("dd.MM.yyyy HH:mm:ss", "%d.%m.%Y %H:%M:%S"),
        ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
        ("dd/MM/yyyy HH:mm:ss.SSSSSS", "%d/%m/%Y %H:%M:%S.%f"),
        ("ss mm HH dd MM yyyy", "%S %M %H %d %m %Y"),
        ("XXX yyyy-MM-dd HH:mm:ss", "+02:00 %Y-%m-%d %H:%M:%S"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "%Y-%m-%dT%H:%M:%S+02:00"),
        ("d.M.yyyy H:m:s", "%d.%m.%Y %H:%M:%S"),
        ("(dd\\MM) yyyy", "(%d\\%m) %Y"),
    ],
)
def test_columns_are_read_as_single_values_are(pattern: str, form: str) -> None:
    chance = random.Random(pattern)
    first = dt.datetime(1950, 1, 1)
    days = [first + dt.timedelta(seconds=chance.randrange(4_000_000_000)) for _ in range(400)]
    texts = [day.strftime(form) for day in days]
    texts[250] = "2024-07-01"
    rules = TextRules("Asia/Kolkata", timestamp=TimePattern.of("timestampFormat", pattern))
    kind = kind_of("TIMESTAMP")

    together = parsed(pa.array(texts), kind, rules)

    assert together.values.to_pylist() == [
        parsed(pa.array([text]), kind, rules).values[0].as_py() for text in texts
    ]
    assert together.bad is not None
    assert together.bad.nonzero()[0].tolist() == [250]
