"""Whole numbers among the options of tables that others have written."""

from __future__ import annotations

import pytest

from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.whole_numbers import LARGEST, whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), (" 12 ", 12), ("0010", 10), (str(LARGEST), LARGEST)]
)
def test_number_is_read(text: str, number: int) -> None:
    assert whole_number({"a": text}, "a", 1) == number


def test_default_is_taken_if_the_option_is_missing() -> None:
    assert whole_number({"b": "7"}, "a", 5) == 5


@pytest.mark.parametrize(
    "text",
    ["", " ", "x", "-1", "+1", "1.0", "1e3", "1_000", "\u0663", "0", str(LARGEST + 1), "9" * 9999],
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(NotSupportedError, match="Option a = ") as refused:
        whole_number({"a": text}, "a", 5)
    assert len(str(refused.value)) < 300


def test_zero_is_read_where_it_may_be() -> None:
    assert whole_number({"a": "0"}, "a", 5, least=0) == 0
