"""From a DAG file to one snapshot: create, insert, then update, delete and insert in one merge."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

DAG = """
from datetime import datetime
import os
from airflow.sdk import DAG, task
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source

FOLDER = os.environ["LAKE"]

with DAG("{dag_id}", schedule=None, start_date=datetime(2024, 1, 1),
         default_args={{"target": "shop.{dag_id}"}},
         params={{"day": "2024-05-06"}}) as dag:
    create = CreateTableOperator(
        task_id="create",
        columns=[
            column("id", "BIGINT", nullable=False),
            column("state", "STRING"),
            column("day", "STRING"),
        ],
        partition_keys=["day"],
    )
    merges = [
        MergeIntoOperator(
            task_id=f"merge_{{number}}",
            source=sql_source(
                "SELECT id, state, '{{{{ params.day }}}}' AS day FROM changes",
                sources={{
                    "changes": file_source(
                        f"{{FOLDER}}/{dag_id}_{{number}}.csv", "csv", options={{"header": True}},
                        schema="id BIGINT, state STRING",
                    )
                }},
            ),
            on="t.id = s.id",
            when=[
                when_matched("s.state = 'gone'").delete(),
                when_matched().update({{"state": "s.state"}}),
                when_not_matched("s.state <> 'gone'").insert_all(),
            ],
        )
        for number in range({merges})
    ]

    @task
    def report(result):
        print("RESULT", result["status"], result["metrics"]["updated"])

    create >> merges[0]
    for one, next_one in zip(merges, merges[1:]):
        one >> next_one
    report(merges[1].output)
"""

PHASES = {
    *("prepare", "launcher", "jvm", "imports", "session", "catalog", "history", "analyze", "plan"),
    *("source", "prune", "write", "commit", "clean", "end"),
}


def named_phases(log):
    """The names in a line such as "seconds: session 2.1 | write 0.8 [logger]"."""
    line = log.partition(" seconds: ")[2].splitlines()[0]
    return {phase.split()[0] for phase in line.split(" | ")}


def write_csv(lake, name, rows):
    lines = ["id,state", *(f"{key},{state}" for key, state in rows)]
    (lake.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_create_load_merge_and_a_merge_that_fails(lake):
    lake.add_dag("tickets", DAG.format(dag_id="tickets", merges=3))
    write_csv(lake, "tickets_0", [(1, "new"), (2, "new"), (3, "new")])
    write_csv(lake, "tickets_1", [(2, "paid"), (3, "gone"), (4, "new"), (5, "gone")])
    write_csv(lake, "tickets_2", [(2, "sent"), (2, "back"), (6, "new")])

    done = lake.airflow("dags", "test", "tickets")

    assert "shop.tickets: committed, snapshot 2" in done.stdout, done.stdout[-8000:]
    assert "inserted 1 | updated 1 | deleted 1" in done.stdout
    assert "RESULT committed 1" in done.stdout
    assert named_phases(done.stdout.partition("shop.tickets: committed, snapshot 2")[2]) == PHASES
    table = lake.read("shop.tickets")
    assert sorted((row["id"], row["state"], row["day"]) for row in table["rows"]) == [
        (1, "new", "2024-05-06"),
        (2, "paid", "2024-05-06"),
        (4, "new", "2024-05-06"),
    ]
    assert table["snapshots"] == [1, 2], "the third merge left the table alone"
    assert "AirflowFailException" in done.stdout
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES" in done.stdout
    (failure,) = [each["error"] for each in lake.results("shop.tickets") if each["error"]]
    assert "2" in failure["message"], "the error names the key"
    assert not list((lake.folder / "tmp").glob("merge-job-*")), "request files are removed"
