"""Texts as DOUBLE and FLOAT."""

from __future__ import annotations

import math
import struct

import pytest

from spark_jobs.landing.values import TextRules
from tests.landing.reading import REFUSED, value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1", 1.0), ("-1.5", -1.5), ("+1.5", 1.5), (".5", 0.5), ("5.", 5.0), (" 1e3 ", 1000.0)),
        *(("1E-2", 0.01), ("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308)),
        *(
            ("5e-324", 5e-324),
            ("0" * 400 + "1", 1.0),
            ("123456789012345678901234567890", 1.2345678901234568e29),
        ),
    ],
)
def test_numbers_are_the_nearest_double(text: str, number: float) -> None:
    assert value(text, "DOUBLE") == number


def test_minus_zero_keeps_its_sign() -> None:
    assert math.copysign(1, value("-0.0", "DOUBLE")) == -1


def test_a_float_is_rounded_once() -> None:
    # By way of a double, this would be 1.0.
    text = "1.00000005960464477540"

    assert value(text, "FLOAT") == struct.unpack("<f", struct.pack("<I", 0x3F800001))[0]


def test_a_number_too_large_is_refused_and_not_infinity() -> None:
    assert value("1e309", "DOUBLE") == REFUSED
    assert value("-1e309", "DOUBLE") == REFUSED
    assert value("1e39", "DOUBLE") == 1e39
    assert value("1e39", "FLOAT") == REFUSED


def test_a_number_too_small_is_zero() -> None:
    assert value("1e-400", "DOUBLE") == 0.0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("Inf", math.inf), ("-Inf", -math.inf), ("Infinity", math.inf)),
        *(("+Infinity", math.inf), ("-Infinity", -math.inf), (" Inf ", math.inf)),
    ],
)
def test_infinity_is_spelled_as_spark_does(text: str, number: float) -> None:
    assert value(text, "DOUBLE") == number
    assert value(text, "FLOAT") == number


def test_nan_is_spelled_as_spark_does() -> None:
    assert math.isnan(value("NaN", "DOUBLE"))
    assert math.isnan(value("NaN", "FLOAT"))


def test_the_options_name_other_spellings() -> None:
    rules = TextRules(nan="n/a", positive_inf="oo", negative_inf="-oo")

    assert math.isnan(value("n/a", "DOUBLE", rules))
    assert value("oo", "DOUBLE", rules) == math.inf
    assert value("-oo", "DOUBLE", rules) == -math.inf
    assert value("NaN", "DOUBLE", rules) == REFUSED
    assert value("Inf", "DOUBLE", rules) == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "-", "e5", "1e", "1e+", "1,5", "1d", "1f", "0x1p3", "1_0", "--1", "+-1", "++1"),
        *("nan", "NAN", "-NaN", "inf", "INF", "infinity", "nan(12)", "1 2", "٣", "1\0", "NULL"),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    assert value(text, "DOUBLE") == REFUSED
    assert value(text, "FLOAT") == REFUSED
