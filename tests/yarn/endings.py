"""Tasks that are ended at each point of their jobs; none may publish anything afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.operators.statement_list import insert_into
from airflow_provider_merge.operators.statements import StatementsOperator
from tests.live.spark_python import running_spark_python
from tests.support.paimon_metadata import TableFiles
from tests.yarn.cluster import REACHABLE, SILENT, Cluster, Points, Task

_SOURCE = sql_source("SELECT 1L AS id, DATE '2026-01-01' AS day", sources={})
_SMALL_FILES = """
import sys
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.support.paimon_tables import append_with_pypaimon
connector = open_connector(CatalogSpec("paimon", sys.argv[1]), {})
for number in range(6):
    table = connector.metadata.load_table(TableName("shop", sys.argv[2]))
    append_with_pypaimon(table, [{"id": number, "day": __import__("datetime").date(2026, 1, 1)}])
"""
Make = Callable[[Cluster, str, dict[str, Any]], SparkJobOperator]
Go = Callable[[Task, Points, TableFiles], None]


@dataclass(frozen=True)
class Ending:
    """A point at which a task is ended.

    ``go`` lets its job get there, which stops at ``stop`` then; empty: there is no driver yet.
    """

    make: Make
    stop: str
    go: Go


@dataclass(frozen=True)
class Ended:
    """The snapshots when the task was ended and when its application had; how both ended."""

    before: list[str]
    after: list[str]
    application: dict[str, Any]
    error: BaseException | None


def ended(cluster: Cluster, name: str, *, reachable: bool) -> Ended:
    """End a task at the point ``name``, with the cluster within reach or not."""
    ending, table = ENDINGS[name], cluster.table()
    points = Points(cluster.folder / f"faults-{table.name}")
    points.arm()
    parameters = cluster.parameters(**points.conf)
    parameters["spark_conn_id"] = REACHABLE if reachable else SILENT
    task = Task(cluster, lambda: ending.make(cluster, table.name, parameters))
    try:
        if ending.stop:
            points.arm(ending.stop)
            task.start()
            ending.go(task, points, table)
            task.wait_for(ending.stop, lambda: points.is_hit(ending.stop))
            application_id = task.application_id()
            before = cluster.snapshots(table.name)
            task.end()
        else:
            with cluster.full():
                task.start()
                application_id = task.application_id()
                before = cluster.snapshots(table.name)
                task.end()
    finally:
        (points.folder / "release").touch()
    application = cluster.ended(application_id)
    after = cluster.snapshots(table.name)
    shutil.rmtree(points.folder)
    return Ended(before, after, application, task.error)


def insert(cluster: Cluster, table: str, parameters: dict[str, Any]) -> SparkJobOperator:
    """An INSERT of one row."""
    return InsertIntoOperator(task_id="t", target=f"shop.{table}", source=_SOURCE, **parameters)


def _two_inserts(cluster: Cluster, table: str, parameters: dict[str, Any]) -> SparkJobOperator:
    statements = [
        insert_into(name, target=f"shop.{table}", source=_SOURCE) for name in ("one", "two")
    ]
    return StatementsOperator(
        task_id="t", statements=statements, on_failure="continue", **parameters
    )


def _compact(cluster: Cluster, table: str, parameters: dict[str, Any]) -> SparkJobOperator:
    with running_spark_python(cluster.environment.python.parents[1]) as python:
        python.run(_SMALL_FILES, str(cluster.warehouse), table)
    return CompactOperator(task_id="t", target=f"shop.{table}", mode="full", **parameters)


def _at_once(task: Task, points: Points, table: TableFiles) -> None:
    """Nothing has to be done for it."""


def _conflict(task: Task, points: Points, table: TableFiles) -> None:
    """Change the schema while the job writes."""
    points.arm("sink")
    task.wait_for("a file of data", lambda: points.is_hit("sink"))
    schema = json.loads((table.folder / "schema" / "schema-0").read_text())
    text = json.dumps({**schema, "id": 1, "comment": "changed"})
    (table.folder / "schema" / "schema-1").write_text(text)
    points.release("sink")


ENDINGS = {
    "accepted": Ending(insert, "", _at_once),
    "at work": Ending(insert, "look-1", _at_once),
    "in the pause after a conflict": Ending(insert, "enter-2", _conflict),
    "between two statements": Ending(_two_inserts, "enter-2", _at_once),
    "in a compaction": Ending(_compact, "look-1", _at_once),
}
