"""A whole Airflow beside YARN: what ends a task there, and what the table and Airflow say then.

tests/live has the same with drivers on the worker, and test_endings with tasks alone.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.live.sabotage import kill_worker
from tests.live.server import Server
from tests.live.spark_python import ROOT, running_spark_python
from tests.live.table import Table
from tests.support.waiting import wait_for
from tests.yarn.cluster import REACHABLE, SILENT, Points

# Five minutes each; the parts are tested by themselves.
pytestmark = pytest.mark.extended

DAG = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import sql_source

with DAG({name!r}, schedule=None, start_date=datetime(2024, 1, 1)):
    InsertIntoOperator(
        task_id="insert",
        target="shop.{name}",
        source=sql_source("SELECT 1L AS id, DATE '2026-01-01' AS day", sources={{}}),
        retries={retries},
        retry_delay=timedelta(seconds=1),
        execution_timeout=timedelta(seconds={seconds}),
        spark_conn_id={connection!r},
        **{parameters!r},
    )
"""


@pytest.fixture(scope="module")
def server(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    (folder / "tmp").mkdir()
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
    live = Server(folder, variables)
    try:
        live.start()
        yield live
    finally:
        left = live.stop()
    assert left == []


@pytest.fixture(scope="module")
def spark_python(cluster):
    with running_spark_python(cluster.environment.python.parents[1]) as python:
        yield python


@pytest.fixture
def points(tmp_path):
    return Points(tmp_path)


@pytest.fixture
def triggered(cluster, server, spark_python, points):
    """Starts the run ``run`` of a DAG whose drivers stop at ``stops``; its table."""

    def trigger(*stops, connection, retries=0, seconds=1800):
        name = cluster.table().name
        points.arm(*stops)
        text = DAG.format(
            name=name,
            retries=retries,
            seconds=seconds,
            connection=connection,
            parameters=cluster.parameters(**points.conf),
        )
        server.add_dag(name, text)
        server.client.trigger(name, "run")
        return Table(server, cluster.warehouse, spark_python, name)

    return trigger


def applications(cluster, table):
    """How the applications ended, oldest first."""
    found = cluster.applications(f"{table.name}.insert")
    found.sort(key=lambda each: each["startedTime"])
    return [cluster.ended(each["id"])["finalStatus"] for each in found]


def xcom(server, table):
    return server.client.xcom(table.name, "run", "insert")


def test_marked_failed(cluster, server, points, triggered):
    table = triggered("look-1", connection=REACHABLE, retries=1)
    wait_for("the driver", lambda: points.is_hit("look-1"))

    server.client.mark_failed(table.name, "run", "insert")

    assert server.client.ended(table.name, "run") == "failed"
    assert applications(cluster, table) == ["KILLED"]
    assert table.snapshots() == []


def test_cleared(cluster, server, points, triggered):
    table = triggered("look-1", connection=SILENT)
    wait_for("the driver", lambda: points.is_hit("look-1"))

    server.client.clear(table.name, "run", "insert")

    assert server.client.ended(table.name, "run") == "success"
    points.release("look-1")
    assert applications(cluster, table) == ["FAILED", "SUCCEEDED"]
    assert table.snapshots() == [1]
    assert xcom(server, table)["snapshot_id"] == 1
    assert [xcom(server, table)["operation_id"]] == table.operation_ids()


def test_timed_out_in_the_queue(cluster, server, triggered):
    with cluster.full():
        table = triggered(connection=SILENT, seconds=20)
        assert server.client.ended(table.name, "run") == "failed"
        assert table.snapshots() == []

    assert applications(cluster, table) == ["FAILED"]
    assert table.snapshots() == []


def test_killed_worker(cluster, server, points, triggered):
    table = triggered("look-1", connection=SILENT, retries=1)
    wait_for("the driver", lambda: points.is_hit("look-1"))
    (operation_id,) = table.jobs()

    kill_worker(table, operation_id, with_job=True)

    assert server.client.ended(table.name, "run") == "success"
    points.release("look-1")
    assert applications(cluster, table) == ["FAILED", "SUCCEEDED"]
    assert server.client.task(table.name, "run", "insert")["try_number"] == 2
    assert table.snapshots() == [1]
    assert xcom(server, table)["snapshot_id"] == 1
    assert table.operation_ids() == [operation_id]
    result = json.loads(table.result_file(operation_id).read_text())
    assert result["try_number"] == 2
