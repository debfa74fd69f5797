"""Marking a running task as failed ends its Spark job; what it had published is not forgotten."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from tests.live.orders import BEFORE, ONCE, SLOWLY, Orders
from tests.live.sabotage import pause_after_commit
from tests.support.waiting import wait_for

# A source that takes a minute: the job is in the middle of it when it is ended.
SLOW = (
    "SELECT id, n FROM VALUES (2, 20), (3, 30) AS v(id, n) "
    "WHERE reflect('java.lang.Thread', 'sleep', 30000L) = 'null'"
)


def test_marked_failed(orders: Callable[..., Orders]) -> None:
    table = orders(source=SLOW, retries=3)
    table.trigger("run")
    operation_id = table.driver_under_way()
    assert "java" in names_of(table.processes(operation_id))
    table.server.client.mark_failed(table.dag_id, "run", "merge")
    wait_for("the end of the job", lambda: not table.processes(operation_id))
    assert table.ended("run") == "failed"
    assert table.task("run")["try_number"] == 1
    assert table.snapshots() == [1]
    assert table.rows() == BEFORE
    assert table.event_snapshots() == []
    assert not list(table.server.folder.glob(f"tmp/merge-job-{operation_id}*"))


def names_of(processes: list[psutil.Process]) -> set[str]:
    """The programs of those that still run."""
    found = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found.add(process.name())
    return found


@pytest.mark.by_turns(2, 0)
def test_marked_failed_after_it_had_published(orders: Callable[..., Orders]) -> None:
    """Clearing asks for new work, which would count twice: somebody has to decide."""
    table = orders(value=SLOWLY)
    client = table.server.client
    table.trigger("run")
    operation_id = pause_after_commit(table)
    client.mark_failed(table.dag_id, "run", "merge")
    wait_for("the end of the job", lambda: not table.processes(operation_id))
    assert table.ended("run") == "failed"
    assert table.rows() == ONCE

    client.clear(table.dag_id, "run", "merge")
    assert table.ended("run") == "failed"
    log = table.log("run", 2)
    assert "ENDED_TRY_COMMITTED" in log
    assert f"Operation {operation_id} of this task was ended, but had committed snapshot 2" in log
    assert table.snapshots() == [1, 2]

    table.write_dag(value=SLOWLY, then="skip")
    client.clear(table.dag_id, "run", "merge")
    assert table.ended("run") == "success"
    assert "The statement was not run again." in table.log("run", 3)
    assert table.xcom("run")["snapshot_id"] == 2
    assert table.snapshots() == [1, 2]
    assert table.event_snapshots() == [2]
    assert table.rows() == ONCE

    # Its end was seen: clearing it now is plainly asking for the work again.
    table.write_dag(then="skip")
    client.clear(table.dag_id, "run", "merge")
    assert table.ended("run") == "success"
    assert table.xcom("run")["snapshot_id"] == 3
