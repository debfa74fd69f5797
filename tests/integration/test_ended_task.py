"""A task that is marked while its job is about to publish: Airflow has not noticed yet."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from tests.support.paimon_metadata import TableFiles

pytestmark = pytest.mark.slow

DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import sql_source

with DAG("marked", schedule=None, start_date=datetime(2024, 1, 1)):
    InsertIntoOperator(
        task_id="insert",
        target="shop.marked",
        source=sql_source("SELECT 1L AS id, DATE '2024-05-06' AS day", sources={}),
    )
"""


def test_nothing_is_published_for_a_task_that_was_marked_failed(lake):
    """Of all runs of ``airflow dags test`` nobody misses a heartbeat, so nobody ends the job."""
    TableFiles(lake.warehouse, "marked").create()
    lake.add_dag("marked", DAG)
    over = threading.Event()
    marking = threading.Thread(target=mark_failed_while_it_runs, args=(lake, over))
    marking.start()

    done = lake.airflow("dags", "test", "marked")

    over.set()
    marking.join()
    assert "RUN_GIVEN_UP" in done.stdout, done.stdout[-8000:]
    assert "its task was ended: its state is failed" in done.stdout
    assert lake.read("shop.marked") == {"rows": [], "snapshots": []}
    folder = lake.warehouse / "shop.db" / "marked"
    assert not [*folder.rglob("*.parquet"), *folder.glob("manifest/*"), *folder.glob("consumer/*")]


def mark_failed_while_it_runs(lake, over):
    """What the button does in the database, when the job has begun."""
    while not [*lake.warehouse.glob("_operations/*/lease")]:
        if over.wait(0.05):
            return
    with sqlite3.connect(lake.folder / "airflow" / "airflow.db", timeout=60) as database:
        statement = "UPDATE task_instance SET state = 'failed' WHERE dag_id = 'marked'"
        database.execute(f"{statement} AND task_id = 'insert'")
