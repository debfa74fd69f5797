"""A backfill replaces its days and nothing else, each once, while several of its runs go on."""

from __future__ import annotations

from datetime import datetime
from itertools import accumulate

from tests.live.days import new, old
from tests.live.sabotage import kill_worker, pause_before_commit

DAYS = [f"2026-01-{day:02}" for day in range(2, 12)]
BEFORE, AFTER = "2026-01-01", "2026-01-12"


def most_at_once(runs):
    """The largest number of runs that went on at the same time."""
    starts = [(datetime.fromisoformat(run["start_date"]), 1) for run in runs]
    ends = [(datetime.fromisoformat(run["end_date"]), -1) for run in runs]
    return max(accumulate(step for _, step in sorted(starts + ends)))


def check(days, dates, *, snapshots):
    """Each run replaced its day in a snapshot of its own; tries by operation, runs at once."""
    runs = days.backfill_runs()
    assert [run["state"] for run in runs] == ["success"] * len(dates)
    results = [days.result(days.dag_id, run["dag_run_id"]) for run in runs]
    assert [each["partitions"] for each in results] == [[f"day={day}"] for day in dates]
    assert sorted(each["snapshot_id"] for each in results) == snapshots
    assert days.snapshots()[-1] == snapshots[-1]
    replaced = [row for day in dates for row in new(day)]
    assert days.rows() == [*old(BEFORE), *replaced, *old(AFTER)]
    tries = [days.tries(days.dag_id, run["dag_run_id"]) for run in runs]
    operations = [each["operation_id"] for each in results]
    return dict(zip(operations, tries, strict=True)), most_at_once(runs)


def check_first(days, killed):
    """Three runs at once, and the worker that was killed at its work; the tries by operation."""
    tries, at_once = check(days, DAYS, snapshots=list(range(2, 2 + len(DAYS))))
    assert tries == {**dict.fromkeys(tries, 1), killed: 2}
    assert at_once == 3
    return tries


def kill_one(days):
    """Kill a worker, and its job, before its commit; its operation."""
    killed = pause_before_commit(days)
    kill_worker(days, killed, with_job=True)
    return killed


def test_ten_days(days):
    days.create([BEFORE, *DAYS, AFTER])

    days.server.client.backfill(days.dag_id, DAYS[0], DAYS[-1], runs=3)

    check_first(days, kill_one(days))


# A backfill is written into a database that the scheduler writes into as well: SQLite may be
# locked, and then half of a backfill was made. So what needs two of them, or the command, is for
# PostgreSQL.
def test_ten_days_by_command_and_again_on_postgresql(days_on_postgresql):
    days = days_on_postgresql
    days.create([BEFORE, *DAYS, AFTER])
    interval = ("--from-date", DAYS[0], "--to-date", DAYS[-1])
    days.server.airflow(
        "backfill", "create", "--dag-id", days.dag_id, *interval, "--max-active-runs", "3"
    )
    first = check_first(days, kill_one(days))

    days.server.client.backfill(
        days.dag_id, DAYS[0], DAYS[-1], runs=3, reprocess_behavior="completed"
    )

    begin = 2 + len(DAYS)
    again, _ = check(days, DAYS, snapshots=list(range(begin, begin + len(DAYS))))
    assert again.keys().isdisjoint(first), "it is new work"
    assert list(again.values()) == [tries + 1 for tries in first.values()]
