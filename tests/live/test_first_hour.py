"""The usual mistakes of the first hour, as a user meets them: in task logs and import errors.

Each failed task ends with one block: code, place, remedy. What metadata can tell is told within
seconds of the task's start, without Java.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime

import pytest

from tests.live.orders import Orders
from tests.live.server import Server
from tests.live.spark_python import SparkPython
from tests.live.table import Table
from tests.support.waiting import wait_for

DAG = "mistakes"
PHASES = {
    *("prepare", "launcher", "jvm", "imports", "session", "catalog", "history", "analyze", "plan"),
    *("source", "prune", "write", "commit", "clean", "end"),
}
_HEADER = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor

MERGE = "MERGE INTO shop.mistakes AS t USING shop.changes AS s ON {on} WHEN MATCHED {then}"


def merge(task_id, on="t.id = s.id", then="THEN DELETE"):
    MergeIntoOperator(task_id=task_id, sql=MERGE.format(on=on, then=then))


with DAG("mistakes", schedule=None, start_date=datetime(2024, 1, 1)):
"""
# By task: the code, then words of the block.
MISTAKES = {
    "target": ("TABLE_NOT_FOUND", "no table shop.mistaks", "Correct the table's name"),
    "source_table": ("TABLE_NOT_FOUND", "no table shop.chnges", "Correct the table's name"),
    "column": ("COLUMN_NOT_FOUND", "s.idd is not a column of shop.changes", "Did you mean id?"),
    "ambiguous": ("AMBIGUOUS_REFERENCE", "n is a column of", "Write t.n or s.n."),
    "assigned": ("COLUMN_NOT_FOUND", "line 1: clause 1 (WHEN MATCHED): m is not", "Columns: id, n"),
    "file": ("COLUMN_NOT_FOUND", "sql (wrong.sql), line 3: condition of clause 1", "Did you mean"),
    "type": ("TYPE_MISMATCH", "column n: a value of type BOOLEAN cannot be stored", "Cast the"),
    "values": ("EXPRESSION_INVALID", "INSERT has 1 values for 2 columns", "Name the columns"),
    "path": (
        "SOURCE_NOT_FOUND",
        "there is no file or folder /landing/none.csv",
        "Correct the path",
    ),
    "glob": ("SOURCE_NOT_FOUND", "no file matches /landing/*.csv", "Correct the path"),
    "partition": ("COLUMN_NOT_FOUND", "shop.mistakes has no partitions", "Leave it out."),
    "catalog": ("REQUEST_INVALID", "there is no connection 'lake'", "Create it with"),
    "spark": ("REQUEST_INVALID", "spark_conn_id: there is no connection 'yarn'", "Create it with"),
    "template": ("SYNTAX_ERROR", "sql: line 1, column 32: expected the end", ""),
    "sensor": ("TABLE_NOT_FOUND", "no table shop.orderz", "Correct the table's name"),
}
_TASKS = """
    merge("column", on="t.id = s.idd")
    merge("ambiguous", then="AND n > 1 THEN DELETE")
    merge("assigned", then="THEN UPDATE SET m = 1")
    merge("type", then="THEN UPDATE SET n = (1 > 0)::BOOLEAN")
    MergeIntoOperator(task_id="file", sql="wrong.sql")
    MergeIntoOperator(task_id="values", sql=MERGE.format(
        on="t.id = s.id", then="THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id)"))
    DeleteFromOperator(task_id="target", target="shop.mistaks", where="id = 1")
    InsertIntoOperator(task_id="source_table", target="shop.mistakes",
        source=table_source("shop.chnges"))
    InsertIntoOperator(task_id="path", target="shop.mistakes",
        source=file_source("/landing/none.csv", "csv", schema="id BIGINT, n BIGINT"))
    InsertIntoOperator(task_id="glob", target="shop.mistakes",
        source=file_source("/landing/*.csv", "csv", schema="id BIGINT, n BIGINT"))
    DropPartitionsOperator(task_id="partition", target="shop.mistakes", partitions=[{"day": "x"}])
    DeleteFromOperator(task_id="catalog", target="shop.mistakes", catalog_conn_id="lake")
    DeleteFromOperator(task_id="spark", target="shop.mistakes", spark_conn_id="yarn")
    DeleteFromOperator(task_id="template", sql="DELETE FROM shop.mistakes {{ 'WERE' }} id = 1")
    PartitionSensor(task_id="sensor", table="shop.orderz", partition={"day": "x"})
"""
_WRONG_FILE = """MERGE INTO shop.mistakes AS t
USING shop.changes AS s ON t.id = s.id
WHEN MATCHED AND s.nn > 1 THEN DELETE
"""
# By the task that the import error names: a line of a DAG, and the words of the error.
IMPORT_ERRORS = {
    "text": (
        'DeleteFromOperator(task_id="text", sql="DELETE FRM shop.a")',
        "sql: line 1, column 8",
    ),
    "no_file": ('UpdateOperator(task_id="no_file", sql="none.sql")', "there is no file 'none.sql'"),
    "type": (
        'CreateTableOperator(task_id="type", sql="CREATE TABLE a.b (c INTT)")',
        "Did you mean INT?",
    ),
    "format": (
        'InsertIntoOperator(task_id="format", target="a.b", source=file_source("/x", "parqet"))',
        "parqet",
    ),
    "unused": (
        (
            'UpdateOperator(task_id="unused", sql="UPDATE a.b SET c = 1", '
            'sources={"s": table_source("a.c")})'
        ),
        "sources.s: the statement never reads it",
    ),
    "age": (
        'FreshnessSensor(task_id="age", table="a.b", max_age="2 days")',
        "timedelta(days=2)",
    ),
}
_CREATE = """
for each in (name, TableName("shop", "changes")):
    tables.create(connector, {"id": "BIGINT", "n": "BIGINT"}, name=each)
"""
_JAVA = re.compile(r"spark-submit|\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN)")


@pytest.fixture(scope="module")
def run_id(server: Server, spark_python: SparkPython) -> str:
    """A run of all tasks, which has ended."""
    Table(server, server.folder / "warehouse", spark_python, DAG).python(_CREATE)
    (server.dags / "wrong.sql").write_text(_WRONG_FILE)
    server.add_dag(DAG, _HEADER + _TASKS)
    server.client.trigger(DAG, "all")
    assert server.client.ended(DAG, "all") == "failed"
    return "all"


@pytest.mark.parametrize("task_id", MISTAKES)
def test_a_task_ends_with_one_block(server: Server, run_id: str, task_id: str) -> None:
    code, problem, remedy = MISTAKES[task_id]
    log = server.client.log(DAG, run_id, task_id, 1)
    block = server.client.error_block(DAG, run_id, task_id, 1)
    assert block.startswith(f"{code}: "), log
    assert problem in block, log
    assert f"\nWhere: task {DAG}.{task_id}" in block, log
    assert remedy in block, log
    assert len(block.splitlines()) < 40, "fits on a screen"
    assert not _JAVA.search(log), log


def test_what_metadata_tells_takes_seconds(server: Server, run_id: str) -> None:
    seconds = {}
    for task_id in MISTAKES:
        task = server.client.task(DAG, run_id, task_id)
        began, ended = (datetime.fromisoformat(task[each]) for each in ("start_date", "end_date"))
        seconds[task_id] = (ended - began).total_seconds()
    sys.stdout.write(f"seconds from a task's start to its error: {seconds}\n")


def test_a_success_is_short(server: Server, spark_python: SparkPython) -> None:
    orders = Orders(server, server.folder / "warehouse", spark_python, "short_log")
    orders.create()
    orders.trigger("once")
    assert orders.ended("once") == "success", orders.log("once")
    log = orders.log("once")
    lines = log[log.index("Operation ") :].splitlines()
    assert len(lines) <= 25, log
    assert not [line for line in lines if line.startswith(("error", "critical"))], log
    (phases,) = [line.partition(" seconds: ")[2] for line in lines if " seconds: " in line]
    assert {phase.split()[0] for phase in phases.split(" | ")} == PHASES


def test_import_errors_name_task_and_remedy(server: Server) -> None:
    path = server.dags / "broken.py"
    try:
        for task_id, (line, problem) in IMPORT_ERRORS.items():
            path.write_text(f"{_HEADER.replace('mistakes', 'broken')}    {line}\n")
            error = wait_for(f"the error of {task_id}", lambda: _error_of(server, task_id))  # noqa: B023
            assert problem in error, error
    finally:
        path.unlink()
    wait_for("no errors", lambda: not server.client.call("GET", "/importErrors")["import_errors"])


def _error_of(server: Server, task_id: str) -> str:
    """The stack trace that the page shows, once it is of this task."""
    errors = server.client.call("GET", "/importErrors")["import_errors"]
    traces = [each["stack_trace"] for each in errors]
    return next((trace for trace in traces if f"task '{task_id}': " in trace), "")
