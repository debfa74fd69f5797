"""The same id for every try of one piece of work, another for every other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_provider_merge.operators._shared.operation_id import operation_id

START = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
WORK: dict[str, Any] = {
    "dag_id": "shop",
    "run_id": "scheduled__2024-05-06",
    "run_start_date": START,
    "task_id": "merge",
    "map_index": -1,
    "max_tries": 2,
}


def test_stable_over_releases() -> None:
    assert operation_id(**WORK) == "27b51771-a8c3-5ff7-b117-7517cc70dc68"


def test_same_instant_in_another_zone_is_the_same_work() -> None:
    there = START.astimezone(timezone(timedelta(hours=9)))
    assert operation_id(**{**WORK, "run_start_date": there}) == operation_id(**WORK)


@pytest.mark.parametrize(
    "change",
    [
        {"dag_id": "shop2"},
        {"run_id": "manual__2024-05-06"},
        {"run_start_date": START + timedelta(microseconds=1)},
        {"task_id": "merge2"},
        {"map_index": 0},
        {"max_tries": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_work_has_another_id(change: dict[str, Any]) -> None:
    assert operation_id(**{**WORK, **change}) != operation_id(**WORK)


def test_parts_can_not_run_into_each_other() -> None:
    one: dict[str, Any] = {**WORK, "dag_id": "a", "task_id": "b.c"}
    other: dict[str, Any] = {**WORK, "dag_id": "a.b", "task_id": "c"}
    assert operation_id(**one) != operation_id(**other)
