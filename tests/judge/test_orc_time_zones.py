"""ORC files of Java writers in any time zone: the same dates and times for every reader."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from tests.judge.judge import read_with_java
from tests.judge.merging import update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences

KINDS = {"id": "BIGINT", "v": "INT", "day": "DATE", "at": "TIMESTAMP(6)", "short": "TIMESTAMP(3)"}
SECOND = 1_000_000_000
# Before and after changes of the clock, and far from now.
TIMES = [
    0,
    1_000,
    1_700_000_000 * SECOND + 123_456_000,
    1_710_054_000 * SECOND,  # New York springs forward on this day.
    9_200_000_000 * SECOND + 999_999_000,  # 2261
]
DAYS = [date(1, 1, 1), date(1500, 3, 1), date(1582, 10, 10), date(1969, 12, 31), date(9999, 12, 31)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_rewritten_rows_keep_their_times(spark, warehouse, zone):
    options = {"file.format": "orc"}
    table = replace(JavaTable.of_types(warehouse.path, "d.t", KINDS, (), options), zone=zone)
    rows = [
        {"id": i, "v": i, "day": DAYS[i % len(DAYS)], "at": at, "short": at - at % 1_000_000}
        for i, at in enumerate(TIMES)
    ]
    table.append_rows([*rows, dict.fromkeys(KINDS) | {"id": 99}])
    before = read_with_java(warehouse.path, "d.t")

    assert update(spark, warehouse, {"v": "7"}, "id = 0 OR v > 100").error is None

    expected = [row | ({"v": 7} if row["id"] == 0 else {}) for row in before]
    assert not differences(warehouse.both_readers("d.t"), expected)
    assert not differences(before, [*rows, dict.fromkeys(KINDS) | {"id": 99}])
