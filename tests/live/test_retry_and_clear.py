"""One piece of work is applied once, whatever dies; new work under an old name is applied."""

from __future__ import annotations

from tests.live.orders import ONCE, SLOWLY, THRICE, TWICE
from tests.live.sabotage import kill_job, pause_after_commit


def test_committed_then_died_then_cleared_then_deleted(orders):
    table = orders(value=SLOWLY)

    # The job commits and dies before it stores a result. There are no retries: the worker lives,
    # and learns from the table that the work is done.
    table.trigger("nightly")
    operation_id = pause_after_commit(table)
    kill_job(table, operation_id)
    assert table.ended("nightly") == "success"
    assert table.task("nightly")["try_number"] == 1
    assert table.xcom("nightly")["snapshot_id"] == 2
    assert table.xcom("nightly")["operation_id"] == operation_id
    assert table.xcom("nightly")["metrics"]["updated"] == 1
    assert table.event_snapshots() == [2]
    assert "committed snapshot 2" in table.log("nightly")
    assert table.rows() == ONCE

    # Clearing the task is asking for the work again.
    table.server.client.clear(table.dag_id, "nightly", "merge")
    assert table.ended("nightly") == "success"
    assert table.xcom("nightly")["snapshot_id"] == 3
    assert table.rows() == TWICE

    # So is a new run under the id of a deleted one.
    table.server.client.delete_run(table.dag_id, "nightly")
    table.trigger("nightly")
    assert table.ended("nightly") == "success"
    assert table.xcom("nightly")["snapshot_id"] == 4
    assert table.snapshots() == [1, 2, 3, 4]
    assert table.rows() == THRICE
    assert len(set(table.operation_ids())) == 3
    assert table.event_snapshots()[-2:] == [3, 4]
    assert not list(table.folder.glob("consumer/*")), "no guard is left"
    assert not list(table.operations.glob(f"{operation_id}-*")), "no temporary files are left"
