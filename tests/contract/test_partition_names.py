"""Results, asset events and metadata call a partition by the same name."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from spark_jobs.contract.partition_names import only_value, partition_name, partition_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("NULL", "NULL"),
        (7, "7"),
        (True, "true"),
        (Decimal("1E+2"), "100"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 7, 0, 0, 5), "2026-01-31 07:00:00.000005"),  # noqa: DTZ001
        (datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=2))), "2026-01-30 23:00:00"),
        (b"\0\xff", "00ff"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
    ids=str,
)
def test_the_text_of_a_value(value: Any, text: str | None) -> None:
    assert partition_text(value) == text


def test_the_name_has_each_column() -> None:
    assert partition_name({"day": date(2026, 1, 31), "open": False}) == "day=2026-01-31/open=false"
    assert partition_name({}) == ""


def test_null_is_a_word() -> None:
    assert partition_name({"day": None}) == "day=NULL"


@pytest.mark.parametrize(("name", "value"), [("day=a=b", "a=b"), ("day=NULL", None), ("day=", "")])
def test_the_value_behind_the_name_of_one_column(name: str, value: str | None) -> None:
    assert only_value(name) == value
