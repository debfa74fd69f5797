"""An application master, an executor or the node is lost in the middle of a job."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from tests.support.waiting import wait_for
from tests.yarn.cluster import REACHABLE, SILENT, TURNS, Cluster, Points, Task
from tests.yarn.endings import insert

MASTER, EXECUTOR = "ApplicationMaster", "CoarseGrainedExecutorBackend"


@pytest.fixture
def points(tmp_path):
    return Points(tmp_path)


def begun(
    cluster: Cluster, points: Points, point: str, connection: str, **more: Any
) -> tuple[Task, str, str]:
    """A task whose job has come to a point; the table's name and the application's id."""
    table = cluster.table().name
    points.arm(point)
    parameters = {**cluster.parameters(**points.conf), "spark_conn_id": connection, **more}
    task = Task(cluster, lambda: insert(cluster, table, parameters))
    task.start()
    task.wait_for(point, lambda: points.is_hit(point))
    return task, table, task.application_id()


def jvm(cluster: Cluster, main: str) -> psutil.Process:
    """The only Java process of that class in a container."""
    (found,) = [
        each for each in cluster.yarn.processes()
        if each.name() == "java" and any(main in word for word in each.cmdline())
    ]  # fmt: skip
    return found


@pytest.mark.by_turns(TURNS, 7)
def test_killed_application_master(cluster, points):
    task, table, application_id = begun(cluster, points, "look-1", REACHABLE)

    jvm(cluster, MASTER).kill()
    task.join()
    points.release("look-1")

    assert cluster.ended(application_id)["finalStatus"] == "FAILED"
    assert "SPARK_FAILED" in str(task.error)
    wait_for("the end of the driver", lambda: not cluster.yarn.processes())
    assert cluster.snapshots(table) == []


@pytest.mark.by_turns(TURNS, 8)
def test_killed_executor(cluster, points):
    task, table, application_id = begun(cluster, points, "sink", SILENT)

    jvm(cluster, EXECUTOR).kill()
    points.release("sink")
    task.join()

    assert task.error is None
    assert cluster.ended(application_id)["finalStatus"] == "SUCCEEDED"
    assert task.result["metrics"]["inserted"] == 1
    assert cluster.snapshots(table) == ["snapshot-1"]


@pytest.mark.by_turns(TURNS, 9)
def test_preempted_executors(cluster, points):
    """Two jobs in queues that share a node, which the first has all of."""
    first, table, application_id = begun(cluster, points, "sink", SILENT, num_executors=4)
    wait_for("all executors", lambda: running(cluster, application_id) == 5)
    other, parameters = cluster.table().name, cluster.parameters()
    parameters |= {"spark_conn_id": SILENT, "yarn_queue": "other"}
    second = Task(cluster, lambda: insert(cluster, other, parameters))

    second.start()
    second.join()
    points.release("sink")
    first.join()

    assert (first.error, second.error) == (None, None)
    assert cluster.application(application_id)["numNonAMContainerPreempted"] > 0
    assert first.result["metrics"]["inserted"] == 1
    assert cluster.snapshots(table) == ["snapshot-1"]
    assert cluster.snapshots(other) == ["snapshot-1"]


def running(cluster: Cluster, application_id: str) -> int:
    """The application's containers."""
    return int(cluster.application(application_id)["runningContainers"])


@pytest.mark.by_turns(TURNS, 10)
def test_lost_node(cluster, points):
    """YARN gives the node up, but its containers go on: a driver without a cluster."""
    task, table, application_id = begun(cluster, points, "look-1", REACHABLE)
    driver = jvm(cluster, MASTER)
    try:
        cluster.yarn.lose_node()
        task.join()
        assert cluster.ended(application_id)["finalStatus"] == "FAILED"
        assert driver.is_running()
        points.release("look-1")
        wait_for("the end of the driver", lambda: not driver.is_running())
    finally:
        cluster.yarn.end_processes()
        cluster.yarn.start_node()

    assert task.error is not None
    assert cluster.snapshots(table) == []
