"""Texts as TINYINT, SMALLINT, INT and BIGINT."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.landing.values import TextRules, parsed
from tests.landing.reading import REFUSED, value

LIMITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


@pytest.mark.parametrize("type_name", LIMITS)
def test_the_range_ends_where_the_type_ends(type_name: str) -> None:
    limit = 1 << LIMITS[type_name]

    assert value(str(limit - 1), type_name) == limit - 1
    assert value(str(-limit), type_name) == -limit
    assert value(str(limit), type_name) == REFUSED
    assert value(str(-limit - 1), type_name) == REFUSED


@pytest.mark.parametrize(
    ("text", "number"),
    [("+5", 5), (" 5", 5), ("5\t", 5), (" +5 ", 5), ("-0", 0), ("007", 7), ("-007", -7)],
)
def test_blanks_around_signs_and_leading_zeros_are_read(text: str, number: int) -> None:
    assert value(text, "INT") == number


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "1.0", "1.", "1e3", "0x1F", "0X1f", "-0x1", "1_000", "1,000", "1 2"),
        *(
            "+",
            "-",
            "--1",
            "+-1",
            "++1",
            "- 1",
            "٣",
            "\uff11",
            "1\0",
            "\u00a01",
            "NaN",
            "true",
            "NULL",
        ),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    assert value(text, "INT") == REFUSED


def test_a_number_of_a_million_digits_is_refused_at_once() -> None:
    assert value("9" * 1_000_000, "BIGINT") == REFUSED
    assert value("0" * 1_000_000 + "9", "BIGINT") == 9


def test_one_bad_text_among_many_is_the_only_bad_one() -> None:
    texts = [str(number) for number in range(1000)]
    texts[617] = "x"

    found = parsed(pa.array(texts), pa.int32(), TextRules())

    assert found.bad is not None
    assert found.bad.nonzero()[0].tolist() == [617]
    assert found.values.to_pylist() == [None if i == 617 else i for i in range(1000)]
