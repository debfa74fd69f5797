"""Marked secrets go through whole runs, good ones and bad ones, and are found nowhere afterwards.

A marker that is planted in the open has to be found: else the search would prove nothing.
"""

from __future__ import annotations

import json
import re
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.client import Client
from tests.live.database import content
from tests.live.evidence import Watch, files_below, places_of
from tests.live.orders import Orders
from tests.live.server import Server
from tests.support.waiting import wait_for

_DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source

def merge(task_id, query="SELECT 2 AS id, 20 AS n", source=None, **conf):
    return MergeIntoOperator(
        task_id=task_id,
        target="shop.{table}",
        catalog_conn_id="secret_lake",
        source=source or sql_source(query, sources={{}}),
        on="t.id = s.id",
        when=[when_matched().update({{"n": "t.n + s.n"}}), when_not_matched().insert_all()],
        conf={{
            "spark.ui.enabled": True,
            "spark.ui.port": 0,
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": "file://{events}",
            "spark.log.level": "INFO",
            **conf,
        }},
    )

with DAG(
    {dag_id!r},
    schedule=None,
    start_date=datetime(2024, 1, 1),
    description="{in_the_open}",
    max_active_tasks=1,
):
    merge("good")
    merge("failing", "SELECT CAST(raise_error('{in_the_open}') AS BIGINT) AS id, 1 AS n")
    merge("conf", **{{"spark.hadoop.fs.s3a.secret.key": "{{{{ var.value.shop_password }}}}"}})
    merge("source", source=file_source(
        "/in", "csv", options={{"url": "jdbc:x://u:{{{{ conn.secret_lake.password }}}}@h/d"}}
    ))
"""


@pytest.fixture(scope="module")
def secrets() -> dict[str, Any]:
    """A secret for each way in."""
    ways = ("password", "option", "extra", "variable")
    return {way: f"{way}-{uuid.uuid4()}" for way in ways}


@pytest.fixture
def run(
    server: Server, orders: Callable[..., Orders], secrets: dict[str, Any], tmp_path: Path
) -> tuple[dict[str, Any], dict[str, Any], Watch, str, dict[str, Any]]:
    """The tasks' states, the files that are left, and what was seen meanwhile."""
    in_the_open = f"open-{uuid.uuid4()}"
    table = orders()
    events = server.folder / "events"
    events.mkdir()
    extra = {
        "warehouse": str(server.folder / "warehouse"),
        "options": json.dumps({"fs.s3.accessKeySecret": secrets["option"]}),
        "fs.s3.securityToken": secrets["extra"],
        "ui_url": "https://lake.example/{database}/{table}?snapshot={snapshot_id}",
    }
    document = {"conn_type": "paimon", "password": secrets["password"], "extra": extra}
    # By files: Airflow keeps the arguments of its own commands.
    (tmp_path / "connections.json").write_text(json.dumps({"secret_lake": document}))
    server.airflow("connections", "import", str(tmp_path / "connections.json"))
    (tmp_path / "variables.json").write_text(json.dumps({"shop_password": secrets["variable"]}))
    server.airflow("variables", "import", str(tmp_path / "variables.json"))
    dag_id = f"{table.dag_id}_dag"
    text = _DAG.format(dag_id=dag_id, table=table.dag_id, in_the_open=in_the_open, events=events)
    server.add_dag(dag_id, text)
    client = server.client
    with Watch(server) as watch:
        client.trigger(dag_id, "run")
        driver = wait_for("the driver's page", lambda: spark_page(client, dag_id, "good"))
        client.ended(dag_id, "run")
    tasks = ("good", "failing", "conf", "source")
    states = {task: client.task(dag_id, "run", task)["state"] for task in tasks}
    logs = {f"log of {task}": client.log(dag_id, "run", task, 1).encode() for task in tasks}
    pages = {"driver": driver, **{task: client.links(dag_id, "run", task) for task in tasks}}
    left = {**files_below(server.folder), **logs, "database": content(server)}
    return states, left, watch, in_the_open, pages


def spark_page(client: Client, dag_id: str, task: str) -> str | None:
    """The link of a running task."""
    return client.links(dag_id, "run", task)["Spark application"]


def test_no_secret_is_seen_anywhere(
    run: tuple[dict[str, Any], dict[str, Any], Watch, str, dict[str, Any]], secrets: dict[str, Any]
) -> None:
    states, files, watch, in_the_open, pages = run
    assert states == {"good": "success", "failing": "failed", "conf": "failed", "source": "failed"}
    assert b"conf.spark.hadoop.fs.s3a.secret.key: holds a secret" in files["log of conf"]
    assert b"source.options.url: holds a secret" in files["log of source"]
    seen = {**files, **watch.seen}

    # Links lead to the driver while it runs, then to the history server and the snapshot.
    assert pages["driver"].startswith("http://")
    history, snapshot = pages["good"]["Spark application"], pages["good"]["Snapshot"]
    assert re.fullmatch(r"http://history\.example/history/local-\d+/", history)
    assert snapshot == "https://lake.example/shop/no_secret_is_seen_anywhere?snapshot=2"
    assert pages["failing"]["Spark application"].startswith("http://history.example/history/local-")
    assert pages["failing"]["Snapshot"] is None
    table = pages["conf"].pop("Table")
    assert table.startswith("/lakehouse/table?connection=secret_lake&database=shop&table=")
    assert not any(pages["conf"].values())

    # The search finds what is there: in logs, in Airflow's database, in the job's own files.
    open_places = places_of(in_the_open, seen)
    for part in ("database", "events/", "_operations/", "log of failing", "/request.json"):
        assert any(part in place for place in open_places), (part, open_places)
    assert {"java", "python"} <= {kind.split(".")[0].rstrip("3") for kind in watch.kinds()}
    assert any(name.startswith("environment java") for name in watch.seen)

    leaks = {way: places_of(secret, seen) for way, secret in secrets.items()}
    assert leaks == {way: [] for way in secrets}
    # They did reach the job, in a file of its user only, which is gone.
    assert watch.credentials == {(stat.S_IRUSR | stat.S_IWUSR, stat.S_IRWXU)}
    assert [name for name in files if "merge-job-" in name] == []
