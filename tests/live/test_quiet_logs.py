"""Whole logs of all tasks that have succeeded so far in this run: nothing in them alarms.

It runs last, on what the other tests have made, and on one of the groups of operators on one of the
formats: another one has its turn with ``MERGE_TESTS_TURN=1``.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseOperator

from airflow_provider_merge.get_provider_info import get_provider_info
from tests.live.server import Server
from tests.support.turns import EVERYTHING, part

# What remains, and why. Each is matched from the start of the line's text.
KNOWN = {
    r"Spark-Submit cmd: .*spark\.log\.level=WARN": "the setting with which Spark is quiet",
    r"\S+ could not be polled: STORAGE_UNAVAILABLE: ": "a store that the tests stopped",
    r"\S+ \S+ WARNING airflow_provider_merge\.job: conflict in \w+ \d of ": "writers at once",
    r"Operation \S+ of this task was ended, but had committed snapshot ": "tasks that were marked",
    r"The job committed snapshot \d+ of \S+ and ended before it": "killed drivers",
    r"The job was done, then its process failed: The driver was killed": "killed drivers",
    r"Skipping masking for a secret as it's too short": "Airflow's own, of any field like sql",
}
# A machine that stands still for ten seconds; a trace of Java's follows.
_HEARTBEAT = re.compile(r"\S+ \S+ WARN Executor: Issue communicating with driver in heartbeater")
_TRACE = re.compile(r"::(end)?group::|at |Caused by: |\.\.\. \d+ more|[\w.]+RpcTimeoutException: ")
_ALARMS = re.compile(r"Traceback|Exception|ERROR|WARN|BrokenPipe|XCom not found|Phase begins")
_LEVELS = {"warning", "error", "critical"}

DAG = "quiet"
_GROUPS = (
    ("paimon_default", "statements"),
    ("iceberg_quiet", "care"),
    ("iceberg_quiet", "statements"),
    ("paimon_default", "care"),
    ("iceberg_quiet", "branches"),
    ("paimon_default", "audited"),
)
GROUPS = _GROUPS if EVERYTHING else (_GROUPS[part(6)],)
_DAG = """
from datetime import datetime

from airflow.sdk import DAG, chain, task_group

from airflow_provider_merge.operators.branches import (
    CherryPickOperator, CreateBranchOperator, DeleteBranchOperator, FastForwardOperator,
)
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.rollback import (
    RollbackOperator, SetCurrentSnapshotOperator,
)
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.operators.statement_list import sql_statement
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.table_care import TableCareOperator
from airflow_provider_merge.operators.tags import CreateTagOperator, DeleteTagOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.undo_run import UndoRunOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.operators.write_audit_publish import WriteAuditPublish

ROWS = "(SELECT CAST(id AS BIGINT) AS id, '1' AS p FROM range({0}))"


def begun(table, common):
    return [
        CreateTableOperator(task_id="create", **common,
            sql=f"CREATE TABLE {table} (id BIGINT, p STRING) PARTITIONED BY (p)"),
        InsertIntoOperator(task_id="insert", **common,
            sql=f"INSERT INTO {table} SELECT * FROM {ROWS.format(3)}"),
        CreateTagOperator(task_id="tag", tag="kept", target=table, **common),
    ]


def statements(table, common):
    of_table = {**common, "target": table}
    return [
        MergeIntoOperator(task_id="merge", **common,
            sql=f"MERGE INTO {table} AS t USING {ROWS.format(4)} AS s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 0 THEN DELETE WHEN NOT MATCHED THEN INSERT *"),
        UpdateOperator(task_id="update", sql=f"UPDATE {table} SET id = 7 WHERE id = 1", **common),
        DeleteFromOperator(task_id="delete", where="id = 2", **of_table),
        StatementsOperator(task_id="list", **common, statements=[
            sql_statement("one", f"DELETE FROM {table} WHERE id = 3"),
            sql_statement("two", f"INSERT INTO {table} SELECT * FROM {ROWS.format(2)}")]),
        StatementsOperator(task_id="file", allow_drop=True, **common,
            sql=f"DROP TABLE IF EXISTS {table}_2; /* as people write it */ "
            f"CREATE TEMPORARY VIEW v AS SELECT * FROM {table}; "
            f"CREATE TABLE {table}_2 AS SELECT * FROM v; DELETE FROM {table}_2 WHERE id = 1"),
        QueryOperator(task_id="query", sql=f"SELECT count(*) AS n FROM {table}", **common),
        InsertOverwriteOperator(task_id="overwrite", mode="static", **common,
            sql=f"INSERT OVERWRITE {table} PARTITION (p = '2') SELECT id FROM {ROWS.format(2)}"),
        CreateTableOperator(task_id="versioned", **common, sql=f"CREATE TABLE {table}_3 "
            "(id BIGINT, p STRING, valid_from TIMESTAMP, valid_to TIMESTAMP)"),
        Scd2Operator(task_id="versions", target=f"{table}_3", keys=["id"], as_of="2026-01-31",
            source=sql_source(f"SELECT * FROM {ROWS.format(2)}", sources={}), **common),
        AlterTableOperator(task_id="alter", sql=f"ALTER TABLE {table} ADD COLUMN n INT", **common),
        DropPartitionsOperator(task_id="drop", partitions=[{"p": "2"}], **of_table),
        TruncateTableOperator(task_id="truncate", **of_table),
    ]


def care(table, common):
    of_table = {**common, "target": table}
    return [
        InsertIntoOperator(task_id="more", **common,
            sql=f"INSERT INTO {table} SELECT * FROM {ROWS.format(2)}"),
        CompactOperator(task_id="compact", mode="full", **of_table),
        ExpireSnapshotsOperator(task_id="expire", retain_max=1, retain_min=1, **of_table),
        RemoveOrphanFilesOperator(task_id="orphans", **of_table),
        RollbackOperator(task_id="back", tag="kept", force=True, **of_table),
        DeleteTagOperator(task_id="untag", tag="kept", **of_table),
        UndoRunOperator(task_id="undo", undo_dag_id="{{ dag.dag_id }}", tables=table, **common,
            undo_run_id="{{ run_id }}"),
        TableCareOperator(task_id="of_all", tables=table, **common),
    ]


def branches(table, common):
    of_table = {**common, "target": table}
    staged = "{{ ti.xcom_pull(ti.task_id.partition('.')[0] + '.staged')['snapshot_id'] }}"
    return [
        CreateBranchOperator(task_id="branch", branch="audit", **of_table),
        InsertIntoOperator(task_id="staged", **common,
            sql=f"INSERT INTO {table} SELECT * FROM {ROWS.format(5)}"),
        SetCurrentSnapshotOperator(task_id="current", tag="kept", force=True, **of_table),
        CherryPickOperator(task_id="pick", snapshot_id=staged, **of_table),
        FastForwardOperator(task_id="forward", to="main",
            **{**of_table, "target": f"shop.`quiet_branches$branch_audit`"}),
        DeleteBranchOperator(task_id="unbranch", branch="audit", **of_table),
    ]


def audited(table, common):
    return [
        CreateBranchOperator(task_id="branch", branch="b", target=table, **common),
        FastForwardOperator(task_id="forward", to="b", target=table, **common),
        DeleteBranchOperator(task_id="unbranch", branch="b", target=table, **common),
        WriteAuditPublish("group", **common,
            statements=[sql_statement("a", f"INSERT INTO {table} SELECT * FROM {ROWS.format(2)}")],
            checks={"ids": f"SELECT * FROM {table} WHERE id IS NULL"}),
    ]


KINDS = {"statements": statements, "care": care, "branches": branches, "audited": audited}


def tasks(conn_id, name):
    table, common = f"shop.quiet_{name}", {"catalog_conn_id": conn_id}
    chain(*begun(table, common), *KINDS[name](table, common))


with DAG("quiet", schedule=None, start_date=datetime(2024, 1, 1)):
    chain(*[
        task_group(group_id=f"{conn_id}_{name}")(tasks)(conn_id, name)
        for conn_id, name in GROUPS
    ])
"""


@pytest.fixture
def every_kind(server: Server, tmp_path: Path) -> list[Any]:
    """The operators of a run with the tasks of the groups, which have succeeded."""
    extra = {"type": "sql", "init_catalog_tables": "true"}
    extra |= {"warehouse": str(tmp_path), "workspace": str(tmp_path)}
    iceberg = {"connection_id": "iceberg_quiet", "conn_type": "lakehouse_iceberg"}
    iceberg |= {"host": f"sqlite:///{tmp_path}/catalog.db", "extra": json.dumps(extra)}
    server.client.call("POST", "/connections", iceberg)
    server.add_dag(DAG, f"GROUPS = {GROUPS!r}\n{_DAG}")
    server.client.trigger(DAG, "all")
    server.client.ended(DAG, "all")
    tasks = server.client.tasks(DAG, "all")
    logs = [
        server.client.log(DAG, "all", each["task_id"], 1)
        for each in tasks
        if each["state"] == "failed"
    ]
    assert {each["state"] for each in tasks} == {"success"}, "\n".join(logs)
    return [each["operator_name"] for each in tasks]


def test_each_operator_is_in_a_group() -> None:
    assert set(re.findall(r"(\w+Operator)\(", _DAG)) == operators()


def test_nothing_alarms(server: Server, every_kind: list[Any]) -> None:
    known = re.compile("|".join(KNOWN))
    read, alarming = set(), []
    for path in sorted((server.folder / "home" / "logs").rglob("attempt=*.log*")):
        events = [json.loads(line) for line in path.read_text().splitlines() if line]
        if not _is_of_a_success(events):
            continue
        read.add(path)
        alarming += [
            f"{path.relative_to(server.folder)}: {event}"
            for event in _without_heartbeats(events)
            if _alarms(event) and not known.match(event.get("event", ""))
        ]
    assert len(read) >= len(every_kind)
    assert not alarming, "\n".join(alarming[:40])


def operators() -> set[Any]:
    """The names of all operators."""
    modules = [
        each for entry in get_provider_info()["operators"] for each in entry["python-modules"]
    ]
    found = [each for name in modules for each in vars(importlib.import_module(name)).values()]
    return {
        each.__name__
        for each in found
        if isinstance(each, type) and issubclass(each, BaseOperator) and each.__module__ in modules
    }


def _is_of_a_success(events: list[Any]) -> bool:
    """Whether a task pushed its result, or a trigger ended; a failed one has an exception."""
    if any(event.get("error_detail") for event in events):
        return False
    last = events[-1].get("event", "") if events else ""
    return last in ("::endgroup::", "trigger completed")


def _without_heartbeats(events: list[Any]) -> Iterator[dict[str, Any]]:
    is_trace = False
    for each in events:
        text = each.get("event", "")
        is_trace = bool(_HEARTBEAT.match(text) or (is_trace and _TRACE.match(text)))
        if not is_trace and text != "::endgroup::":
            yield each


def _alarms(event: dict[str, Any]) -> bool:
    return event.get("level") in _LEVELS or bool(_ALARMS.search(event.get("event", "")))
