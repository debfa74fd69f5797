"""Versions that cannot be told: an error that names it, and a table that stays as it was."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import SqlSource
from spark_jobs.contract.statements import ColumnSpec
from tests.conformance.harness import Harness
from tests.engine.dimensions import COLUMNS, at, batch, dimension, history, run, spec

pytestmark = pytest.mark.slow


def _row(key: int | None, v: str | None, time: int | None) -> dict[str, Any]:
    when = None if time is None else at(time)
    return {"id": key, "v": v, "n": "1", "u": "u", "at": when, "gone": False}


def _stored(v: str, begin: int, end: Any, *, current: bool | None) -> dict[str, Any]:
    until = at(end) if isinstance(end, int) else end
    shown = {"id": 1, "v": v, "n": Decimal("1.00"), "u": "u", "is_deleted": False}
    return {**shown, "valid_from": at(begin), "valid_to": until, "is_current": current}


_SEED = [_stored("a", 3, None, current=True)]
_FOREVER = at(0).replace(year=9999)


@pytest.fixture
def harness(spark: SparkSession, tmp_path: Path) -> Harness:
    return dimension(spark, tmp_path / "w", "append-cow", files=[_SEED])


def test_rows_that_cannot_be_told(harness: Harness, tmp_path: Path) -> None:
    before, snapshot = history(harness), harness.latest_snapshot()
    failing: list[tuple[list[dict[str, Any]], dict[str, Any], str, str]] = [
        ([_row(None, "a", 1)], {}, "NOT_NULL_VIOLATION", "id of the key"),
        ([_row(1, "a", None)], {}, "NOT_NULL_VIOLATION", "effective at"),
        ([_row(2, "a", 5), _row(2, "b", 5)], {}, "SOURCE_KEY_NOT_UNIQUE", '{"id":2}'),
        ([_row(1, "b", 1)], {"late": "fail"}, "VERSION_LATE", '{"id":1}'),
        ([_row(1, "b", 3)], {}, "VERSION_DIFFERS", '{"id":1}'),
        ([_row(1, "b", 9)], {"open_end": "2026-01-01 04:00"}, "VALUE_NOT_STORABLE", "open_end"),
        ([{**_row(1, "b", 9), "n": "x"}], {}, "VALUE_NOT_STORABLE", "n"),
    ]

    for rows, given, code, named in failing:
        result = run(harness, spec(**given), batch(tmp_path / "b", rows))
        assert result.error is not None, code
        assert (result.error.code, named in result.error.message) == (code, True), result.error
    assert (history(harness), harness.latest_snapshot()) == (before, snapshot)


@pytest.mark.parametrize(
    "stored",
    [
        [_stored("a", 1, 4, current=False), _stored("b", 3, None, current=True)],
        [_stored("a", 1, None, current=True), _stored("b", 3, None, current=True)],
        [_stored("a", 1, None, current=True), _stored("b", 1, None, current=True)],
        [_stored("a", 3, 2, current=False)],
        [_stored("a", 1, _FOREVER, current=None)],
        [_stored("a", 1, 5, current=True)],
    ],
    ids=["overlap", "two open", "twice", "backwards", "another open end", "current but closed"],
)
def test_a_history_that_is_none(
    spark: SparkSession, tmp_path: Path, stored: list[dict[str, Any]]
) -> None:
    harness = dimension(spark, tmp_path / "w", "append-cow", files=[stored])

    result = run(harness, spec(), batch(tmp_path / "b", [_row(1, "z", 9)]))
    other = run(harness, spec(), batch(tmp_path / "b", [_row(2, "z", 9)]))

    assert result.error is not None
    assert (result.error.code, '{"id":1}' in result.error.message) == ("VERSIONS_INVALID", True)
    assert other.error is None, other.error


def test_columns_that_do_not_fit(harness: Harness, tmp_path: Path) -> None:
    rows = batch(tmp_path / "b", [_row(1, "b", 9)])
    failing: list[tuple[dict[str, Any], str, str]] = [
        ({"keys": ("nr",)}, "COLUMN_NOT_FOUND", "nr"),
        ({"tracked": ("w",)}, "COLUMN_NOT_FOUND", "w"),
        ({"valid_from": "since"}, "COLUMN_NOT_FOUND", "since"),
        ({"effective": "when"}, "COLUMN_NOT_FOUND", "when"),
        ({"delete_marker": "op"}, "COLUMN_NOT_FOUND", "op"),
        ({"delete_marker": "v"}, "TYPE_MISMATCH", "v"),
        ({"current": "u", "tracked": ("v",)}, "TYPE_MISMATCH", "u"),
        ({"valid_to": "u", "tracked": ("v",)}, "TYPE_MISMATCH", "u"),
        (
            {"effective": "gone", "delete_marker": None, "hard_deletes": "ignore"},
            "TYPE_MISMATCH",
            "gone",
        ),
        ({"deleted": None}, "COLUMN_NOT_FOUND", "is_deleted"),
    ]

    for given, code, named in failing:
        result = run(harness, spec(**given), rows)
        assert result.error is not None, given
        assert (result.error.code, named in result.error.message) == (code, True), result.error


def test_a_primary_key_tells_versions_apart(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {"id": "BIGINT", "valid_from": "TIMESTAMP_NTZ"}
    columns = [ColumnSpec(name, kind, nullable=False) for name, kind in kinds.items()]
    columns += [ColumnSpec("v", "STRING"), ColumnSpec("valid_to", "TIMESTAMP_NTZ")]
    harness = dimension(spark, tmp_path / "w", "primary-key", columns)
    given = {"current": None, "deleted": None, "tracked": ("id",), "keys": ("v",)}

    result = run(harness, spec(**given), batch(tmp_path / "b", [_row(1, "b", 9)]))

    assert result.error is not None
    assert (result.error.code, "valid_from" in result.error.message) == ("NOT_SUPPORTED", True)


_INSTANT = SqlSource(
    "rows", "SELECT 2L AS id, 'v' AS v, 1.5 AS n, 'u' AS u, TIMESTAMP'2026-10-25 00:30:00Z' AS at"
)


def test_instants_are_no_local_times_where_an_hour_occurs_twice(harness: Harness) -> None:
    told = spec(delete_marker=None, hard_deletes="ignore")
    for zone, is_refused in {
        "Europe/Berlin": True,
        "Europe/Moscow": True,
        "Asia/Kolkata": False,
        "+02:00": False,
    }.items():
        result = run(harness, told, _INSTANT, options=JobOptions(session_time_zone=zone))
        assert (result.error is not None) == is_refused, (zone, result.error)
        if result.error is not None:
            assert result.error.code == "TYPE_MISMATCH"
            assert f"{zone}, the session's time zone" in result.error.message


def test_a_local_time_that_the_zone_skips_is_no_instant(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = [
        replace(each, type="TIMESTAMP") if each.name.startswith("valid") else each
        for each in COLUMNS
    ]
    harness = dimension(spark, tmp_path / "w", "append-cow", columns)
    told = spec(delete_marker=None, hard_deletes="ignore")
    options = JobOptions(session_time_zone="Europe/Berlin")
    text = _INSTANT.query.replace("TIMESTAMP'2026-10-25 00:30:00Z'", "TIMESTAMP_NTZ'{}'")
    skipped = run(
        *(harness, told, SqlSource("rows", text.format("2026-03-29 02:30:00"))), options=options
    )
    assert skipped.error is not None
    assert skipped.error.code == "VALUE_NOT_STORABLE"
    assert "skips the local time 2026-03-29 02:30:00" in skipped.error.message
    other = SqlSource("rows", text.format("2026-10-25 02:30:00"))
    assert run(harness, told, other, options=options).error is None
