"""Two runs merge into one table at once: no change is lost, none is applied twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.orders import SLOWLY, TWICE, Orders
from tests.live.sabotage import pause_before_commit, resume


@pytest.mark.extended
def test_two_runs_at_once(orders: Callable[..., Orders]) -> None:
    table = orders(retries=0, value=SLOWLY)
    table.trigger("slow")
    operation_id = pause_before_commit(table)
    table.trigger("fast")
    assert table.ended("fast") == "success"
    resume(table, operation_id)

    assert table.ended("slow") == "success"
    assert table.task("fast")["try_number"] == 1
    # The job itself runs the statement again, without a retry of the task.
    assert table.task("slow")["try_number"] == 1
    assert "conflict in attempt 1 of 5" in table.log("slow", 1)
    assert table.snapshots() == [1, 2, 3]
    assert sorted(table.event_snapshots()) == [2, 3]
    assert table.rows() == TWICE
