"""The outcome comes back through the table and the warehouse: nothing else is shared."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

DAG = """
from datetime import datetime
from airflow.sdk import DAG, task
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import column
from airflow_provider_merge.operators.sources import sql_source
from tests.integration.cluster_mode import ClusterCreate, ClusterMerge

WHEN = [when_matched().update({"state": "s.state"}), when_not_matched().insert_all()]

with DAG("elsewhere", schedule=None, start_date=datetime(2024, 1, 1),
         default_args={"target": "shop.elsewhere"}) as dag:
    create = ClusterCreate(
        task_id="create", columns=[column("id", "BIGINT"), column("state", "STRING")]
    )
    first = ClusterMerge(
        task_id="first", on="t.id = s.id", when=WHEN,
        source=sql_source("SELECT id, 'new' AS state FROM range(3)", sources={}),
    )
    lost = ClusterMerge(
        task_id="lost", on="t.id = s.id", when=WHEN, loses_result=True,
        source=sql_source("SELECT id, 'paid' AS state FROM range(2, 4)", sources={}),
    )
    twice = ClusterMerge(
        task_id="twice", on="t.id = s.id", when=WHEN,
        source=sql_source("SELECT 1L AS id, 'x' AS state FROM range(2)", sources={}),
    )

    @task
    def report(*results):
        for each in results:
            counts = [each["metrics"][name] for name in ("inserted", "updated")]
            print("RESULT", each["status"], each["snapshot_id"], counts)

    create >> first >> lost >> report(first.output, lost.output) >> twice
"""


def test_results_errors_and_a_lost_result(lake):
    lake.add_dag("elsewhere", DAG)

    done = lake.airflow("dags", "test", "elsewhere")

    log = done.stdout
    assert "RESULT committed 1 [3, 0]" in log, log[-8000:]
    assert "RESULT committed 2 [1, 1]" in log, "found in the snapshot, the result being lost"
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES" in log, "the error lay under the warehouse"
    assert "FinalFailure" in log, "Airflow does not retry it"
    table = lake.read("shop.elsewhere")
    states = {row["id"]: row["state"] for row in table["rows"]}
    assert states == {0: "new", 1: "new", 2: "paid", 3: "paid"}
    assert table["snapshots"] == [1, 2]
    assert not list(lake.warehouse.rglob("consumer-*"))
    machines = list(lake.folder.glob("driver-*"))
    assert len(machines) == 4
    for machine in machines:
        request = json.loads((machine / "uploaded" / "request.json").read_text())
        assert request["target"]["table"] == "elsewhere"
