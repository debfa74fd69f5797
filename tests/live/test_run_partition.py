"""Which partition a run is for, as a live scheduler makes runs: by hand, by key, by backfill."""

from __future__ import annotations

from typing import Any

from tests.live.server import Server

DAG_ID = "run_partition"
KEYED = "run_partition_keyed"
TASK = "resolve"
_DAG = f"""
from datetime import datetime
from airflow.sdk import DAG, CronDataIntervalTimetable, CronPartitionTimetable, Param, task
from airflow_provider_merge.run_partition import run_partition

@task(retries=3)
def {TASK}(rendered, **context):
    return {{"rendered": rendered, "called": run_partition(context, "day")}}

form = {{"day": Param(None, type=["null", "string"], format="date")}}
with DAG(
    {DAG_ID!r},
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    end_date=datetime(2026, 1, 31),
    catchup=False,
    params=form,
    user_defined_macros={{"run_partition": run_partition}},
):
    {TASK}("{{{{ run_partition('day') }}}}")

with DAG(
    {KEYED!r},
    schedule=CronPartitionTimetable("0 0 1 1 *", timezone="UTC", key_format="%Y-%m"),
    start_date=datetime(2026, 1, 1),
    end_date=datetime(2026, 1, 31),
    catchup=False,
    params=form,
    user_defined_macros={{"run_partition": run_partition}},
):
    {TASK}("{{{{ run_partition('day') }}}}")
"""
_DAYS = [f"2026-01-{day:02}" for day in range(2, 7)]


def found(server: Server, run_id: str, dag_id: str = DAG_ID) -> Any:
    assert server.client.ended(dag_id, run_id) == "success"
    result = server.client.xcom(dag_id, run_id, TASK)
    assert result["rendered"] == result["called"]
    return result["called"]


def test_runs_by_hand_and_runs_of_a_backfill(server: Server) -> None:
    server.add_dag(DAG_ID, _DAG)
    chosen = {"day": "2026-01-05"}
    trigger = server.client.trigger
    trigger(DAG_ID, "none")
    trigger(DAG_ID, "form", conf=chosen)
    trigger(DAG_ID, "clicked", conf=chosen, logical_date="2026-01-20T10:11:12Z")
    trigger(DAG_ID, "dated", logical_date="2026-01-21T00:00:00Z")
    trigger(KEYED, "keyed", conf=chosen, partition_key="2026-01")
    server.client.backfill(DAG_ID, _DAYS[0], _DAYS[-1], runs=3, dag_run_conf=chosen)

    assert found(server, "form") == "2026-01-05"
    assert found(server, "clicked") == "2026-01-05"
    assert found(server, "dated") == "2026-01-21"
    assert found(server, "keyed", KEYED) == "2026-01"
    assert server.client.ended(DAG_ID, "none") == "failed"
    failed = server.client.task(DAG_ID, "none", TASK)
    assert failed["try_number"] == 1, "no retry can help"
    assert "no partition key, no logical date and no chosen parameter 'day'" in server.client.log(
        DAG_ID, "none", TASK, 1
    )
    runs = [each for each in server.client.runs(DAG_ID) if each.startswith("backfill__")]
    assert sorted(found(server, run) for run in runs) == _DAYS
