"""Marking a running task as failed ends its Spark job, at once and for good."""

from __future__ import annotations

import time

from tests.live.orders import BEFORE
from tests.live.waiting import wait_for

# A source that takes a minute.
SLOW = (
    "SELECT id, n FROM VALUES (2, 20), (3, 30) AS v(id, n) "
    "WHERE reflect('java.lang.Thread', 'sleep', 30000L) = 'null'"
)


def test_marked_failed(orders):
    table = orders(source=SLOW, retries=3)
    table.trigger("run")
    operation_id = table.driver_under_way()
    began = time.monotonic()
    table.server.client.mark_failed(table.dag_id, "run", "merge")
    wait_for("the end of the job", lambda: not table.processes(operation_id))
    assert table.ended("run") == "failed"
    assert table.task("run")["try_number"] == 1
    # What may still be on its way to the table would have arrived by now.
    time.sleep(max(0.0, began + 65 - time.monotonic()))
    assert table.snapshots() == [1]
    assert table.rows() == BEFORE
    assert table.event_snapshots() == []
    assert not list(table.server.folder.glob(f"tmp/merge-job-{operation_id}*"))
