"""Runs load two tables; one is undone by a task and by the command, and cleared afterwards."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.integration.conftest import Lake

LOAD = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.statements import StatementsOperator

with DAG("load", schedule=None, start_date=datetime(2024, 1, 1)):
    StatementsOperator(
        task_id="load",
        sql=\"\"\"
            CREATE TABLE IF NOT EXISTS undo.orders (id INT, state STRING) USING paimon;
            CREATE TABLE IF NOT EXISTS undo.items (id INT) USING paimon;
            INSERT INTO undo.orders SELECT {{ macros.datetime.fromisoformat(ds).day }}, 'new';
            INSERT INTO undo.items SELECT {{ macros.datetime.fromisoformat(ds).day }};
        \"\"\",
    )
"""
UNDO = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.undo_run import UndoRunOperator

RUN = {run!r}
with DAG("undo", schedule=None, start_date=datetime(2024, 1, 1)):
    preview = UndoRunOperator(
        task_id="preview", undo_dag_id="load", undo_run_id=RUN, tables="undo.*", dry_run=True
    )
    preview >> UndoRunOperator(task_id="undo", undo_dag_id="load", undo_run_id=RUN)
"""
DAYS = (3, 4, 5)


def test_a_run_is_undone_and_cleared(lake: Lake) -> None:
    lake.add_dag("load", LOAD)
    for day in DAYS:
        done = lake.airflow("dags", "test", "load", f"2024-01-0{day}")
        assert done.returncode == 0, done.stdout[-8000:]
    run = run_of(lake, 2)
    lake.add_dag("undo", UNDO.format(run=run))

    done = lake.airflow("dags", "test", "undo", "2024-02-01")

    assert done.returncode == 0, done.stdout[-8000:]
    assert "undo.items: planned" in done.stdout
    assert "undo.items: undone" in done.stdout
    assert ids(lake) == {"orders": [3, 5], "items": [3, 5]}
    again = lake.airflow("dags", "test", "load", "2024-01-04")
    assert again.returncode == 0, again.stdout[-8000:]
    assert ids(lake) == {"orders": [3, 4, 5], "items": [3, 4, 5]}

    shown = command(lake, "--dag", "load", "--run", run_of(lake, 5), "--table", "undo.*")

    assert "undo.orders: undone" in shown
    assert ids(lake) == {"orders": [3, 5], "items": [3, 5]}
    back = shown.rpartition("airflow_provider_merge undo ")[2].split()
    command(lake, *back)
    assert ids(lake) == {"orders": [3, 4, 5], "items": [3, 4, 5]}


def run_of(lake: Lake, snapshot: int) -> str:
    """The run that made a snapshot."""
    path = lake.warehouse / f"undo.db/orders/snapshot/snapshot-{snapshot}"
    run: str = json.loads(path.read_text())["properties"]["merge.run-id"]
    return run


def command(lake: Lake, *arguments: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "airflow_provider_merge", "undo", *arguments],
        env=lake.environment(),
        cwd=lake.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def ids(lake: Lake) -> dict[str, list[int]]:
    names = ("orders", "items")
    return {name: sorted(row["id"] for row in lake.read(f"undo.{name}")["rows"]) for name in names}
