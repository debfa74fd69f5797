"""Snapshots expire while a statement runs: it runs again, or says what cannot be known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import delete_from
from tests.conformance.check import OPERATION_ID, request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS, order
from tests.engine.test_conflicts import STATEMENT, Writes

pytestmark = pytest.mark.slow

NOTHING = delete_from("", "id = -1")


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", ORDERS, partitioned=True)


def append(harness: Harness, count: int) -> None:
    for number in range(count):
        harness.append([order(990 + number, "z")])


def expire(harness: Harness, *snapshot_ids: int) -> None:
    """Remove snapshots as an engine does that honours no consumer; all their files live on."""
    for snapshot_id in snapshot_ids:
        folder = harness.warehouse / f"{TARGET.database}.db/{TARGET.table}/snapshot"
        (folder / f"snapshot-{snapshot_id}").unlink()


def guards(harness: Harness) -> list[str]:
    return [path.name for path in harness.warehouse.rglob("consumer-*")]


def run(harness: Harness, **hooks: Callable[[], None]) -> JobResult:
    """Run the statement; each hook is called in the first attempt only."""
    left = dict(hooks)

    def first(name: str) -> None:
        left.pop(name, lambda: None)()

    connector = harness.open()
    writes = Writes(connector.writes, **{name: partial(first, name) for name in hooks})
    request = request_of(STATEMENT, harness)
    return Job(request, harness.spark, replace(connector, writes=writes)).run()


def test_a_base_that_expired_before_it_was_guarded_makes_the_statement_run_again(
    harness: Harness,
) -> None:
    base = harness.latest_snapshot()
    assert base is not None

    def others() -> None:
        append(harness, 1)
        expire(harness, *range(1, base + 1))

    result = run(harness, beginning=others)

    assert result.error is None
    assert (result.metrics.attempts, result.base_snapshot_id) == (2, base + 1)
    assert len(harness.read()) == len(ORDERS.rows) + 2
    assert guards(harness) == []


@pytest.mark.parametrize("with_base", [False, True])
def test_a_snapshot_that_expired_before_it_was_looked_at_makes_the_statement_run_again(
    harness: Harness, with_base: bool
) -> None:
    base = harness.latest_snapshot()
    assert base is not None
    before = harness.state().on_disk

    def others() -> None:
        append(harness, 2)
        expire(harness, *range(1 if with_base else base + 1, base + 2))

    result = run(harness, begun=others)

    assert result.error is None
    assert (result.metrics.attempts, result.base_snapshot_id) == (2, base + 2)
    after = harness.state()
    assert len(after.rows) == len(ORDERS.rows) + 3
    assert after.on_disk <= before | set(after.files)
    assert guards(harness) == []


def guard_of_an_earlier_try(harness: Harness) -> int:
    """What a driver leaves that was killed after its begin; the base that it guarded."""
    base = harness.latest_snapshot()
    assert base is not None
    folder = harness.warehouse / f"{TARGET.database}.db/{TARGET.table}/consumer"
    folder.mkdir()
    (folder / f"consumer-merge-{OPERATION_ID}").write_text(f'{{"nextSnapshot": {base}}}')
    return base


@pytest.mark.parametrize("when", ["beginning", "begun"])
def test_an_earlier_try_may_have_committed_in_what_has_expired(harness: Harness, when: str) -> None:
    base = guard_of_an_earlier_try(harness)
    before = harness.state().on_disk

    def others() -> None:
        append(harness, 2)
        expire(harness, *range(1, base + 2))

    result = run(harness, **{when: others})

    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("COMMIT_HISTORY_EXPIRED", False)
    assert guards(harness) == [f"consumer-merge-{OPERATION_ID}"]
    after = harness.state()
    assert len(after.rows) == len(ORDERS.rows) + 2
    assert after.on_disk <= before | set(after.files)


def test_the_guard_of_an_earlier_try_goes_when_nothing_is_left_to_do(harness: Harness) -> None:
    guard_of_an_earlier_try(harness)

    result = Job(request_of(NOTHING, harness), harness.spark, harness.open()).run()

    assert (result.error, result.status) == (None, "unchanged")
    assert guards(harness) == []
