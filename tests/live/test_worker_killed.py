"""A worker is lost with SIGKILL; Airflow misses its heartbeat and tries again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.orders import BEFORE, ONCE, SLOWLY, Orders
from tests.live.sabotage import kill_worker, lives, pause_after_commit, pause_before_commit


@pytest.mark.extended
def test_before_the_commit(orders: Callable[..., Orders]) -> None:
    table = orders(retries=1, value=SLOWLY)
    table.trigger("run")
    operation_id = pause_before_commit(table)
    orphans = table.processes(operation_id)

    kill_worker(table, operation_id, with_job=False)

    assert any(map(lives, orphans)), "the job outlives its worker"
    assert table.ended("run") == "success"
    assert table.task("run")["try_number"] == 2
    assert not any(map(lives, orphans)), "the next try ends it"
    assert table.snapshots() == [1, 2]
    assert table.operation_ids() == [operation_id]
    assert table.xcom("run")["snapshot_id"] == 2
    assert table.event_snapshots() == [2]
    assert table.rows() == ONCE


@pytest.mark.by_turns(2, 1)
def test_after_the_commit(orders: Callable[..., Orders]) -> None:
    table = orders(retries=2, value=SLOWLY)
    table.trigger("run")
    operation_id = pause_after_commit(table)
    kill_worker(table, operation_id, with_job=True)

    assert table.ended("run") == "success"
    assert table.task("run")["try_number"] == 2
    assert table.snapshots() == [1, 2], "the retry found the commit of the first try"
    assert table.xcom("run")["snapshot_id"] == 2
    assert table.xcom("run")["operation_id"] == operation_id
    assert table.event_snapshots() == [2]
    assert table.rows() == ONCE
    assert not list(table.folder.glob("consumer/*")), "no guard is left"


# tests/engine shows what another digest is told, tests/airflow what the task does then.
@pytest.mark.extended
def test_statement_changed_between_two_tries(orders: Callable[..., Orders]) -> None:
    table = orders(retries=2, value=SLOWLY)
    table.trigger("run")
    kill_worker(table, pause_after_commit(table), with_job=True)
    table.write_dag(retries=2, value="t.n - s.n")

    assert table.ended("run") == "failed"
    assert table.task("run")["try_number"] == 2, "the error is final: the third try is not used"
    assert "OPERATION_ID_REUSED" in table.log("run", 2)
    assert table.snapshots() == [1, 2]
    assert table.event_snapshots() == []
    assert table.rows() == ONCE != BEFORE
