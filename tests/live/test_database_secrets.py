"""The password of a database goes through runs, good ones and bad ones, and is found nowhere."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from tests.live.database import content
from tests.live.evidence import Watch, files_below, places_of
from tests.live.orders import ONCE, Orders
from tests.live.server import Server

_JAR = Path("/usr/share/java/postgresql.jar")
_DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import jdbc_source

def merge(task_id, query):
    return MergeIntoOperator(
        task_id=task_id,
        target="shop.{table}",
        source=jdbc_source("people_db", query=query),
        on="t.id = s.id",
        when=[when_matched().update({{"n": "t.n + s.n"}}), when_not_matched().insert_all()],
        conf={{
            "spark.jars": "{jar}",
            "spark.ui.enabled": True,
            "spark.ui.port": 0,
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": "file://{events}",
            "spark.log.level": "INFO",
        }},
    )

with DAG({dag_id!r}, schedule=None, start_date=datetime(2024, 1, 1), max_active_tasks=1):
    merge("read", "SELECT id, n FROM people")
    merge("absent", "SELECT id, n FROM nobody")
    merge("broken", "SELECT id, n / (n - 20) AS n FROM people")
"""


@pytest.fixture
def login(database: str | None) -> tuple[str, str]:
    """The user of a table of people, and its password."""
    if database is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if not _JAR.exists():
        pytest.skip(f"there is no {_JAR}: apt-get install libpostgresql-jdbc-java")
    user, password = f"reader_{uuid.uuid4().hex[:8]}", f"password-{uuid.uuid4()}"
    with create_engine(database).begin() as connection:
        connection.execute(text(f"CREATE USER {user} PASSWORD '{password}'"))
        connection.execute(text(f"CREATE SCHEMA AUTHORIZATION {user}"))
        rows = "SELECT * FROM (VALUES (2::bigint, 20::bigint), (3, 30)) AS v(id, n)"
        connection.execute(text(f"CREATE TABLE {user}.people AS {rows}"))
        connection.execute(text(f"GRANT SELECT ON {user}.people TO {user}"))
    return user, password


def test_the_password_of_a_database_is_seen_nowhere(
    server: Server,
    orders: Callable[..., Orders],
    database: str,
    login: tuple[str, str],
    tmp_path: Path,
) -> None:
    table, (user, password), address = orders(), login, make_url(database)
    events = server.folder / "database-events"
    events.mkdir()
    document = {
        "conn_type": "postgres",
        "host": address.host,
        "port": address.port,
        "schema": address.database,
        "login": user,
        "password": password,
    }
    # By a file: Airflow keeps the arguments of its own commands.
    (tmp_path / "connections.json").write_text(json.dumps({"people_db": document}))
    server.airflow("connections", "import", str(tmp_path / "connections.json"))
    dag_id = f"{table.dag_id}_dag"
    server.add_dag(dag_id, _DAG.format(dag_id=dag_id, table=table.dag_id, jar=_JAR, events=events))
    client = server.client

    with Watch(server) as watch:
        client.trigger(dag_id, "run")
        client.ended(dag_id, "run")

    tasks = ("read", "absent", "broken")
    states = {task: client.task(dag_id, "run", task)["state"] for task in tasks}
    logs = {f"log of {task}": client.log(dag_id, "run", task, 1).encode() for task in tasks}
    assert states == {"read": "success", "absent": "failed", "broken": "failed"}, logs
    assert table.rows() == ONCE
    assert b"nobody" in logs["log of absent"]
    assert b"division by zero" in logs["log of broken"]
    left = {**files_below(server.folder), **logs, "database": content(server)}
    seen = {**left, **watch.seen}
    # The search finds what is there: the user's name is no secret, and the database has it.
    assert "database" in places_of(user, seen)
    assert places_of(password, seen) == []
