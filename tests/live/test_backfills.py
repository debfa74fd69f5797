"""A backfill replaces its days and nothing else, each once, while several of its runs go on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import accumulate
from typing import Any

import pytest

from tests.live.days import TASK, Days, new, old
from tests.live.sabotage import kill_worker, pause_before_commit

DAYS = [f"2026-01-{day:02}" for day in range(2, 6)]
BEFORE, AFTER = "2026-01-01", "2026-01-06"


def most_at_once(runs: list[dict[str, Any]]) -> int:
    """The largest number of runs that went on at the same time."""
    starts = [(datetime.fromisoformat(run["start_date"]), 1) for run in runs]
    ends = [(datetime.fromisoformat(run["end_date"]), -1) for run in runs]
    return max(accumulate(step for _, step in sorted(starts + ends)))


def results_of(days: Days, runs: list[dict[str, Any]], dates: list[str]) -> dict[str, Any]:
    """The result of each day's run, which replaced that day."""
    assert [run["state"] for run in runs] == ["success"] * len(dates)
    found = [days.result(days.dag_id, run["dag_run_id"]) for run in runs]
    assert [each["partitions"] for each in found] == [[f"day={day}"] for day in dates]
    replaced = [row for day in dates for row in new(day)]
    assert days.rows() == [*old(BEFORE), *replaced, *old(AFTER)]
    return dict(zip(dates, found, strict=True))


def values_of(results: Iterable[dict[str, Any]], name: str) -> list[Any]:
    return sorted(each[name] for each in results)


# A worker that is lost is also in test_worker_killed, a backfill and its repetition below.
@pytest.mark.extended
# Airflow may find SQLite locked and is asked again: then days may have new runs, not second tries.
def test_static_with_a_killed_worker_and_a_completed_day_again(days: Days) -> None:
    dates = DAYS[:3]
    days.create([BEFORE, *dates, AFTER])
    days.server.client.backfill(days.dag_id, dates[0], dates[-1], runs=3)
    killed = pause_before_commit(days)
    kill_worker(days, killed, with_job=True)

    runs = days.backfill_runs(days.dag_id)
    first = results_of(days, runs, dates)
    assert values_of(first.values(), "snapshot_id") == days.snapshots()[1:] == [2, 3, 4]
    tries = {
        first[day]["operation_id"]: days.tries(days.dag_id, run["dag_run_id"])
        for day, run in zip(dates, runs, strict=True)
    }
    assert tries == {**dict.fromkeys(tries, 1), killed: 2}
    assert most_at_once(runs) == 3

    again = dates[1]
    days.wait_for_completion(days.dag_id)
    days.server.client.backfill(days.dag_id, again, again, runs=3, reprocess_behavior="completed")

    second = results_of(days, days.backfill_runs(days.dag_id), dates)
    anew = second.pop(again)
    assert [anew["snapshot_id"]] == days.snapshots()[4:] == [5]
    assert anew["operation_id"] not in tries, "it is new work"
    assert second == {day: first[day] for day in second}, "the other days did not run again"


def test_dynamic_by_command_and_again_on_postgresql(days_on_postgresql: Days) -> None:
    days = days_on_postgresql
    days.create([BEFORE, *DAYS, AFTER])
    late, empty = DAYS[2:]
    create(days, DAYS, late=late, empty=empty)

    runs = days.backfill_runs(days.dynamic)
    assert [run["state"] for run in runs] == ["success", "success", "failed", "success"]
    assert most_at_once(runs) == 3
    first, second, refused, nothing = (run["dag_run_id"] for run in runs)
    replaced = [days.result(days.dynamic, run_id) for run_id in (first, second)]
    assert [each["partitions"] for each in replaced] == [[f"day={day}"] for day in DAYS[:2]]
    assert "PARTITION_NOT_EXPECTED" in days.server.client.log(days.dynamic, refused, TASK, 1)
    assert days.tries(days.dynamic, refused) == 1, "no retry can help"
    assert days.result(days.dynamic, nothing)["snapshot_id"] is None
    assert values_of(replaced, "snapshot_id") == days.snapshots()[1:] == [2, 3]
    kept = [*old(late), *old(empty), *old(AFTER)]
    assert days.rows() == [*old(BEFORE), *new(DAYS[0]), *new(DAYS[1]), *kept]

    days.wait_for_completion(days.dynamic)
    create(days, [late], "--reprocess-behavior", "completed", late="", empty="")

    runs = days.backfill_runs(days.dynamic)
    assert [run["state"] for run in runs] == ["success"] * len(DAYS)
    tries = [days.tries(days.dynamic, run["dag_run_id"]) for run in runs]
    assert tries == [1, 1, 2, 1]
    assert [days.result(days.dynamic, refused)["snapshot_id"]] == days.snapshots()[3:] == [4]
    replaced_rows = [row for day in DAYS[:3] for row in new(day)]
    assert days.rows() == [*old(BEFORE), *replaced_rows, *old(empty), *old(AFTER)]


def create(days: Days, dates: list[str], *options: str, **conf: Any) -> None:
    """What people type: a backfill of the dynamic DAG."""
    interval = ("--from-date", dates[0], "--to-date", dates[-1], "--max-active-runs", "3")
    chosen = ("--dag-run-conf", json.dumps(conf))
    days.server.airflow(
        "backfill", "create", "--dag-id", days.dynamic, *interval, *chosen, *options
    )
