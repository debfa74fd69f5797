"""A task that was ended publishes nothing, whether YARN can be asked to end its job or not."""

from __future__ import annotations

import pytest

from tests.yarn.cluster import REACHABLE, TURNS, Task
from tests.yarn.endings import ENDINGS, ended, insert

# In each run, and those that runs take by turns.
ALWAYS = [("accepted", True), ("accepted", False), ("at work", False)]
OTHERS = [(name, reachable) for name in ENDINGS for reachable in (True, False)
          if (name, reachable) not in ALWAYS]  # fmt: skip
CASES = ALWAYS + [
    pytest.param(*case, marks=pytest.mark.by_turns(TURNS, number))
    for number, case in enumerate(OTHERS)
]


@pytest.mark.parametrize(("name", "reachable"), CASES)
def test_nothing_is_published_afterwards(cluster, name, reachable):
    found = ended(cluster, name, reachable=reachable)

    assert found.after == found.before
    assert found.application["finalStatus"] == ("KILLED" if reachable else "FAILED")
    assert found.error is not None
    # With the credentials; of an application without a driver, only its launcher removes them.
    assert not list(cluster.staging.rglob("credentials.json"))


def test_ended_while_the_launcher_uploads(cluster):
    table, connection = cluster.table().name, {"spark_conn_id": REACHABLE}
    task = Task(cluster, lambda: insert(cluster, table, {**cluster.parameters(), **connection}))
    task.start()
    task.wait_for("credentials", lambda: list(cluster.staging.rglob("credentials.json")))

    task.end()

    for each in cluster.applications(task.name):
        assert cluster.ended(each["id"])["finalStatus"] in {"KILLED", "FAILED"}
    assert not list(cluster.staging.rglob("credentials.json"))
    assert cluster.snapshots(table) == []
