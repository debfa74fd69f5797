"""Several statements in one task: killed in the middle, a retry does the rest and nothing twice."""

from __future__ import annotations

from collections.abc import Callable

from tests.live.orders import BEFORE, SLOWLY, SOURCE, TASK, Orders
from tests.live.sabotage import kill_job
from tests.support.waiting import wait_for

# Each adds something else: what was applied, and how often, can be told from the numbers.
_DAG = '''
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.operators.statement_list import merge_into, sql_statement
from airflow_provider_merge.operators.statements import StatementsOperator

with DAG("{dag_id}_list", schedule=None, start_date=datetime(2024, 1, 1)):
    StatementsOperator(
        task_id={task!r},
        statements=[
            sql_statement("first", "UPDATE shop.{dag_id} SET n = n + 1"),
            merge_into(
                "second",
                target="shop.{dag_id}",
                source=sql_source({source!r}, sources={{}}),
                on="t.id = s.id",
                when=[when_matched().update({{"n": {value!r}}})],
            ),
            sql_statement("third", """
                MERGE WITH SCHEMA EVOLUTION INTO shop.{dag_id} AS t
                USING (SELECT 1 AS id, 'x' AS more) AS s ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET n = t.n + 1000, more = s.more
            """),
        ],
        retries=1,
        retry_delay=timedelta(seconds=1),
    )
'''
AFTER = {1: 1101, 2: 221}


def test_killed_in_the_middle(orders: Callable[..., Orders]) -> None:
    table = orders()
    text = _DAG.format(dag_id=table.dag_id, task=TASK, source=SOURCE, value=SLOWLY)
    dag_id, client = f"{table.dag_id}_list", table.server.client
    table.server.add_dag(dag_id, text)
    client.trigger(dag_id, "run")
    job = table.driver_under_way()
    wait_for("the first snapshot", lambda: table.snapshots() == [1, 2], every=0.05)
    kill_job(table, job)
    assert table.snapshots() == [1, 2], "the second statement was killed too late"
    assert table.rows() == {key: n + 1 for key, n in BEFORE.items()}

    assert client.ended(dag_id, "run") == "success"

    block = client.error_block(dag_id, "run", TASK, 1)
    killed, where, remedy, more = block.rsplit("\n", 3)
    memory = "driver_memory is Spark's default, 1g"
    reason = f"The driver was killed (signal 9, SIGKILL), often for lack of memory: {memory}."
    assert killed.startswith(f"SPARK_FAILED: {reason}\n")
    assert killed.endswith("No result: second, third. Done, and not repeated by a retry: first.")
    assert where == f"Where: task {dag_id}.{TASK}"
    assert remedy.startswith("Remedy: Run fewer jobs at a time")
    assert more == "More: docs/errors.md#spark_failed"
    assert len(killed) < 500, "neither a command line nor what the driver printed"

    assert client.task(dag_id, "run", TASK)["try_number"] == 2
    assert table.rows() == AFTER
    assert table.snapshots() == [1, 2, 3, 4]
    assert len(set(table.operation_ids())) == 3
    results = client.xcom(dag_id, "run", TASK)["statements"]
    assert {name: each["snapshot_id"] for name, each in results.items()} == {
        "first": 2,
        "second": 3,
        "third": 4,
    }
    assert results["third"]["schema_changes"] == ["added more STRING"]
    assert "schema: added more STRING" in client.log(dag_id, "run", TASK, 2)
    (extra,) = client.asset_extras(dag_id)
    assert [each["snapshot_id"] for each in extra["statements"]] == [2, 3, 4]
    assert "first: shop." in client.log(dag_id, "run", TASK, 2)
    assert not list(table.folder.glob("consumer/*")), "no guard is left"
