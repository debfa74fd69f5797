"""Days before 1582 and times in files of old writers are those that were written, or an error."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.harness import Harness
from tests.engine.landed import Landing, new_landing

ROWS = (
    "SELECT 1L AS id, DATE'1500-03-01' AS d, TIMESTAMP'1500-03-01 12:00:00' AS t UNION ALL "
    "SELECT 2L, DATE'2024-07-01', TIMESTAMP'2024-07-01 12:30:00.123456'"
)
EXPECTED = [
    (1, dt.date(1500, 3, 1), dt.datetime(1500, 3, 1, 12, tzinfo=dt.UTC)),
    (2, dt.date(2024, 7, 1), dt.datetime(2024, 7, 1, 12, 30, 0, 123456, tzinfo=dt.UTC)),
]


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    return new_landing(make_table, tmp_path)


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
@pytest.mark.parametrize("calendar", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
def test_parquet_of_either_calendar(landing: Landing, kind: str, calendar: str, zone: str) -> None:
    spark = landing.harness.spark
    settings = {
        "spark.sql.parquet.outputTimestampType": kind,
        "spark.sql.parquet.datetimeRebaseModeInWrite": calendar,
        "spark.sql.parquet.int96RebaseModeInWrite": calendar,
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(ROWS).coalesce(1).write.parquet(str(landing.folder))
    finally:
        for name in settings:
            spark.conf.unset(name)

    result = landing.insert(str(landing.folder), "parquet", zone=zone)

    assert result.error is None, result.error
    found = [(i, d, t.astimezone(dt.UTC)) for i, d, t in landing.rows("id", "d", "t")]
    fraction = 123000 if kind == "TIMESTAMP_MILLIS" else 123456
    last = EXPECTED[1][2].replace(microsecond=fraction)
    assert found == [EXPECTED[0], (*EXPECTED[1][:2], last)]


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_is_of_the_calendar_that_everybody_counts_by_now(
    landing: Landing, format_: str
) -> None:
    text = {"csv": "1,1500-03-01\n", "json": '{"id":1,"d":"1500-03-01"}\n'}[format_]
    path = landing.file(f"a.{format_}", text)

    result = landing.insert(path, format_, schema="id BIGINT, d DATE")

    assert result.error is None, result.error
    assert landing.rows("id", "d") == [(1, dt.date(1500, 3, 1))]


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_number_is_no_time(landing: Landing, format_: str) -> None:
    text = {"csv": "1,1700000000\n", "json": '{"id":1,"t":1700000000}\n'}[format_]
    path = landing.file(f"a.{format_}", text)

    result = landing.insert(path, format_, schema="id BIGINT, t TIMESTAMP")

    assert result.error is not None
    assert result.error.code == "VALUE_NOT_STORABLE"
    assert landing.rows("id") == []
    query = "SELECT id, timestamp_seconds(t) AS t FROM files"
    again = landing.insert(
        path, format_, schema="id BIGINT, t BIGINT", query=query, operation_id="operation-2"
    )
    assert again.error is None, again.error
    ((_, found),) = landing.rows("id", "t")
    assert found.astimezone(dt.UTC) == dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
