"""What a task says, and what becomes of its application, where YARN refuses or is not asked."""

from __future__ import annotations

import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_merge.submit.cancellation import RESOURCE_MANAGER, cancel_application
from tests.yarn.cluster import REACHABLE, SILENT, Cluster, Task
from tests.yarn.endings import insert

PREFIX = "/gateway/yarn"


class Proxy(ThreadingHTTPServer):
    """Stands in front of YARN's pages, below a prefix; ``status``: it refuses with that."""

    def __init__(self, yarn: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.yarn = yarn
        self.status = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PREFIX}"


class _Passing(BaseHTTPRequestHandler):
    server: Proxy

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.status
        if not status:
            assert self.path.startswith(PREFIX)
            status = requests.put(
                self.server.yarn + self.path.removeprefix(PREFIX),
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=60,
            ).status_code
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(cluster):
    with Proxy(cluster.yarn.address) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def submitted(cluster: Cluster, table: str, connection: str, **more: str) -> Task:
    parameters = {**cluster.parameters(), "spark_conn_id": connection, **more}
    task = Task(cluster, lambda: insert(cluster, table, parameters))
    task.start()
    return task


def test_managers_that_refuse_and_one_behind_a_proxy(cluster, proxy, caplog, monkeypatch):
    """All of them are asked for one application, which only the last one ends."""
    table = cluster.table().name
    with cluster.full():
        task = submitted(cluster, table, SILENT)
        application_id = task.application_id()
        task.end()

        def asked(address: str, **extra: str) -> str:
            caplog.clear()
            hook = SparkSubmitHook(conn_id=SILENT)
            hook._connection.update(extra)
            cancel_application(hook, application_id, {RESOURCE_MANAGER: address})
            return caplog.text

        assert "has no yarn_resourcemanager_webapp_address" in asked("")
        assert "ConnectionError" in asked("127.0.0.1:1")
        assert "HTTP 405" in asked(f"{cluster.yarn.address}/wrong/prefix")
        kerberos = asked(cluster.yarn.address, keytab="/k", principal="p")
        assert "requests-kerberos" in kerberos
        for proxy.status in (401, 403, 502):
            assert f"HTTP {proxy.status}" in asked(proxy.address)
        assert f"Application {application_id} was not ended on the cluster" in caplog.text
        assert cluster.application(application_id)["state"] == "ACCEPTED"

        proxy.status = 0
        assert f"Asked YARN to end application {application_id}." in asked(proxy.address)
        assert cluster.ended(application_id)["state"] == "KILLED"
    assert cluster.snapshots(table) == []
    # Its launcher was ended before, and it had no driver: nobody else removes that.
    shutil.rmtree(cluster.staging)


@pytest.mark.by_turns(3)
@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"yarn_queue": "nowhere"}, "nowhere"),
        ({"driver_memory": "64g"}, "max threshold"),
        ({}, "HADOOP_CONF_DIR"),
    ],
    ids=["queue", "memory", "configuration"],
)
def test_an_application_that_is_never_accepted(cluster, monkeypatch, parameters, told):
    if not parameters:
        monkeypatch.delenv("HADOOP_CONF_DIR")
    table = cluster.table().name

    task = submitted(cluster, table, REACHABLE, **parameters)
    task.join()

    assert "SPARK_FAILED" in str(task.error)
    assert told in str(task.error)
    assert cluster.snapshots(table) == []
    assert not list(cluster.staging.rglob("credentials.json"))
