"""Values in messages are written as users write them in SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from spark_jobs.contract.sql_text import sql_conditions, sql_literal


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "true"),
        (7, "7"),
        (Decimal("1.50"), "1.50"),
        (0.5, "0.5"),
        ("2026-01-31", "'2026-01-31'"),
        ("O'Neil\\", "'O\\'Neil\\\\'"),
        (date(2026, 1, 31), "DATE '2026-01-31'"),
        (datetime.fromisoformat("2026-01-31 06:30"), "TIMESTAMP '2026-01-31 06:30:00'"),
        (b"\x01\xff", "X'01FF'"),
    ],
)
def test_a_value_is_its_literal(value: Any, literal: str) -> None:
    assert sql_literal(value) == literal


def test_a_partition_is_its_conditions() -> None:
    values = {"day": date(2026, 1, 31), "hour": 7, "shop": None}
    assert sql_conditions(values) == "day = DATE '2026-01-31', hour = 7, shop = NULL"
