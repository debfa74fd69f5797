"""A value for every parameter of every operator and sensor, and what it needs beside it."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import new_files_source, table_source
from airflow_provider_merge.operators.table_changes import add_column, drop_column
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.parameters import ParameterOperator

SOURCE = table_source("a.s")
TICKET: dict[str, Any] = {
    "operation_id": "preview",
    "target": "a.b",
    "digests": {},
    "columns": "0",
    "base_snapshot_id": None,
    "sources": {},
    "inserted": 0,
    "updated": 0,
    "deleted": 0,
    "version": 1,
}
MERGE = "MERGE INTO a.b USING x ON b.id = x.id WHEN MATCHED THEN DELETE"
# The operation of each in a list of statements.
LISTED: dict[type, str] = {
    AlterTableOperator: "alter_table",
    CreateTableOperator: "create_table",
    DeleteFromOperator: "delete_from",
    DropPartitionsOperator: "drop_partitions",
    InsertIntoOperator: "insert_into",
    InsertOverwriteOperator: "insert_overwrite",
    MergeIntoOperator: "merge_into",
    TruncateTableOperator: "truncate_table",
    UpdateOperator: "update",
}
_PARTS: dict[str, dict[str, Any]] = {
    "AlterTableOperator": {"target": "a.b", "changes": [add_column("n", "INT")]},
    "CreateTableOperator": {"target": "a.b", "columns": [column("id", "INT")]},
    "CherryPickOperator": {"target": "a.b", "snapshot_id": 3},
    "CreateBranchOperator": {"target": "a.b", "branch": "x"},
    "CreateTagOperator": {"target": "a.b", "tag": "t"},
    "DeleteBranchOperator": {"target": "a.b", "branch": "x"},
    "DeleteTagOperator": {"target": "a.b", "tag": "t"},
    "DropPartitionsOperator": {"target": "a.b", "partitions": [{"day": "2"}]},
    "FastForwardOperator": {"target": "a.b", "to": "x"},
    "InsertIntoOperator": {"target": "a.b", "source": SOURCE},
    "InsertOverwriteOperator": {"target": "a.b", "source": SOURCE, "mode": "dynamic"},
    "MergeIntoOperator": {
        "target": "a.b",
        "source": SOURCE,
        "on": "t.id = s.id",
        "when": [when_matched().delete()],
    },
    "QueryOperator": {"sql": "SELECT 1 AS one"},
    "RollbackOperator": {"target": "a.b", "snapshot_id": 3},
    "SetCurrentSnapshotOperator": {"target": "a.b", "snapshot_id": 3},
    "Scd2Operator": {
        "target": "a.b",
        "source": SOURCE,
        "keys": ["id"],
        "effective": "since",
        "as_of": "2026-01-31",
        "deleted": "gone",
    },
    "StatementsOperator": {
        "statements": [{"name": "s", "operation": "truncate_table", "target": "a.b"}]
    },
    "TableCareOperator": {},
    "UndoRunOperator": {"undo_dag_id": "d", "undo_run_id": "r"},
    "DeleteFromOperator": {"target": "a.b", "where": "id = 1"},
    "TruncateTableOperator": {"target": "a.b", "partition": {"day": "2"}},
    "UpdateOperator": {"target": "a.b", "set": {"n": "2"}, "where": "id = 1"},
    "CompactionSensor": {"table": "a.b", "min_small_files": 7},
    "FreshnessSensor": {"table": "a.b", "max_age": 60},
    "PartitionSensor": {"table": "a.b", "partition": {"day": "1"}},
    "SnapshotSensor": {"table": "a.b", "after_id": 3},
    "SourceLagSensor": {"table": "a.b"},
    "TagSensor": {"table": "a.b", "tag": "t"},
}
_TEXTS = {
    "AlterTableOperator": "ALTER TABLE b ADD COLUMN n INT",
    "CreateTableOperator": "CREATE TABLE b (id INT)",
    "DeleteFromOperator": "DELETE FROM b WHERE id IN (SELECT id FROM x)",
    "DropPartitionsOperator": "ALTER TABLE b DROP PARTITION (day = '1')",
    "InsertIntoOperator": "INSERT INTO b SELECT * FROM x",
    "InsertOverwriteOperator": "INSERT OVERWRITE b SELECT * FROM x",
    "MergeIntoOperator": MERGE.replace("a.b", "b"),
    "QueryOperator": "SELECT * FROM x",
    "StatementsOperator": "DELETE FROM b WHERE id IN (SELECT id FROM x)",
    "TruncateTableOperator": "TRUNCATE TABLE b",
    "UpdateOperator": "UPDATE b SET n = 1 WHERE id IN (SELECT id FROM x)",
}
_READS = {name for name, text in _TEXTS.items() if " x" in text}
# What else a parameter needs.
_BESIDE: dict[str, dict[str, Any]] = {
    "dry_run_of": {"dry_run": True},
    "outside_partitions": {"expected_partitions": [{"day": "1"}]},
    "quarantine_table": {
        "expected_partitions": [{"day": "1"}],
        "outside_partitions": "quarantine",
    },
    "output_format": {"output_path": "/out"},
    "type_widening": {"schema_evolution": True},
    "source_alias": {"on": "t.id = src.id"},
    "target_alias": {"on": "tgt.id = s.id"},
}
_NEW_SOURCE = {"source": new_files_source("/landing", "csv", start="all", schema="id INT")}
_NEW_SOURCES = {"sources": {"x": _NEW_SOURCE["source"]}, "where": "id IN (SELECT id FROM x)"}
_BESIDE_OF_CLASS: dict[tuple[str, str], dict[str, Any]] = {
    ("DeleteFromOperator", "dry_run_of"): _NEW_SOURCES,
    ("InsertIntoOperator", "dry_run_of"): _NEW_SOURCE,
    ("MergeIntoOperator", "dry_run_of"): _NEW_SOURCE,
    ("UpdateOperator", "dry_run_of"): _NEW_SOURCES,
}
# Of these only one can be given.
_INSTEAD = {
    ("SnapshotSensor", "after"): "after_id",
    ("SnapshotSensor", "after_last"): "after_id",
    ("RollbackOperator", "tag"): "snapshot_id",
    ("SetCurrentSnapshotOperator", "tag"): "snapshot_id",
    ("CherryPickOperator", "wap_id"): "snapshot_id",
    ("DeleteTagOperator", "expired"): "tag",
    ("CreateTableOperator", "like"): "columns",
}
_VALUES: dict[str, Any] = {
    "actions": ["compact"],
    "after": "2026-01-31T06:00:00+00:00",
    "after_ended_try": "run",
    "after_id": 5,
    "after_last": True,
    "alias": "x",
    "allow_drop": True,
    "allow_empty": True,
    "approved": {"ticket": TICKET},
    "archives": "a.zip",
    "as_of": "2026-02-01",
    "audit_table": "a.audit",
    "branch": "audit",
    "by_name": True,
    "cardinality": "strict",
    "catalog_conn_id": "lake",
    "changed_since": "2026-01-31T06:00:00+00:00",
    "changes": [drop_column("n")],
    "check": "no_rows",
    "checks": ["SELECT * FROM new_rows WHERE id IS NULL"],
    "clean_expired_metadata": True,
    "columns": ["a", "b"],
    "comment": "all",
    "conf": {"spark.a": "b"},
    "corrections": "overwrite",
    "current": "is_current",
    "database": "a",
    "consumer_dag_id": "other_dag",
    "consumer_task_id": "other_task",
    "deferrable": True,
    "delete_marker": "is_gone",
    "deleted": "is_deleted",
    "deleted_share": 0.2,
    "deploy_mode": "client",
    "driver_cores": 2,
    "driver_memory": "2g",
    "dry_run": True,
    "dry_run_of": "foretold",
    "emit_partition_keys": True,
    "effective": "at",
    "exclude": "a.tmp_*",
    "executor_cores": 3,
    "executor_memory": "3g",
    "expected_partitions": [{"day": "1"}],
    "expired": True,
    "force": True,
    "hard_deletes": "new_record",
    "if_exists": True,
    "if_not_exists": True,
    "include_pending": True,
    "isolation": "snapshot",
    "keep_existing": True,
    "keys": ["id", "n"],
    "last_writer_wins": True,
    "late": "fail",
    "like": "a.other",
    "limit": 5,
    "manifests": "rewrite",
    "max_age": 90,
    "max_bytes": "3 gb",
    "max_bytes_rewritten": "3 gb",
    "max_changed_share": 0.2,
    "max_deleted_rows": 3,
    "max_deleted_share": "5%",
    "max_deletes": 4,
    "max_files_rewritten": 4,
    "max_inserted_rows": "5%",
    "max_lag": 3600,
    "max_snapshots": 2,
    "max_new_partitions": 3,
    "max_parallel": 2,
    "max_partition_changed_share": 0.3,
    "max_partition_deleted_share": 0.4,
    "max_partitions": 5,
    "max_seconds": 600,
    "max_snapshot_age": "5 d",
    "max_source_rows": 5,
    "max_updated_rows": 6,
    "min_deleted_rows": 1,
    "min_deleted_share": 0.3,
    "min_files": 6,
    "min_inserted_rows": 1,
    "min_rows": 7,
    "min_small_files": 8,
    "min_snapshots_to_keep": 7,
    "min_sorted_runs": 9,
    "min_source_rows": 1,
    "min_updated_rows": 1,
    "mode": "full",
    "more_catalogs": ["other"],
    "num_executors": 4,
    "older_than": "9 d",
    "on": "t.n = s.n",
    "on_failure": "continue",
    "on_schema_change": "fail",
    "open_end": "9999-12-31",
    "order_by": ["a"],
    "outside_partitions": "keep",
    "orphans_older_than": "3 d",
    "output_format": "csv",
    "output_path": "/other",
    "partition": {"day": "1"},
    "partition_keys": ["id"],
    "partitions": [{"day": "1"}],
    "plan": {"tables": [{"catalog": "lake", "table": "a.b"}]},
    "preview_rows": 5,
    "primary_key": ["id"],
    "properties": {"a": "b"},
    "quarantine_table": "a.late",
    "retain_max": 8,
    "retain_min": 2,
    "retention": "30 d",
    "rewrite_share": 0.4,
    "schema_evolution": True,
    "session_time_zone": "Europe/Berlin",
    "set": {"n": "1"},
    "small_file_share": 0.5,
    "snapshot_id": 4,
    "sort_by": ["a DESC"],
    "sorted_runs": 3,
    "source": table_source("a.other"),
    "source_alias": "src",
    "sources": {"x": SOURCE},
    "spark_conn_id": "spark_2",
    "spark_env": "/opt/spark",
    "statements": ["merge"],
    "table": "a.c",
    "table_options": {"a": "b"},
    "tables": ["a.*"],
    "tag": "nightly",
    "target": "a.c",
    "target_alias": "tgt",
    "target_file_size": 1_000,
    "through": {"day": "3"},
    "to": "audit",
    "tracked": ["a", "b"],
    "type_widening": True,
    "undo_dag_id": "orders",
    "undo_run_id": "manual__1",
    "use_spark": True,
    "valid_from": "begins",
    "valid_to": "ends",
    "wap_id": "w",
    "when": [when_matched("s.gone").delete()],
    "where": "n = 1",
    "whole_if_unpartitioned": True,
    "yarn_queue": "q",
    "zorder_by": ["a", "b"],
}
_OF_CLASS: dict[tuple[str, str], Any] = {
    ("CompactOperator", "target_file_size"): "64 mb",
    ("CompactionSensor", "target_file_size"): "64 mb",
    ("CreateTableOperator", "columns"): [column("a", "INT")],
    ("InsertOverwriteOperator", "mode"): "table",
    ("Scd2Operator", "isolation"): "serializable",
    ("SourceLagSensor", "source"): "a.other",
    ("TableCareOperator", "on_failure"): "warn",
    ("UndoRunOperator", "on_refused"): "skip",
    ("UndoRunOperator", "tables"): ["a.b", "c.*"],
    ("StatementsOperator", "statements"): [
        {"name": "s", "operation": "delete_from", "target": "a.b", "where": "n = 1"},
        {"name": "u", "operation": "truncate_table", "target": "a.b", "partition": {"day": "1"}},
    ],
}


def classes() -> list[type[ParameterOperator]]:
    """The operators and sensors that the provider lists."""
    info = get_provider_info()
    modules = [
        name
        for kind in ("operators", "sensors")
        for each in info[kind]
        for name in each["python-modules"]
    ]
    found = {
        value
        for name in modules
        for value in vars(importlib.import_module(name)).values()
        if inspect.isclass(value)
        and issubclass(value, ParameterOperator)
        and not inspect.isabstract(value)
        and value.__module__ == name
    }
    return sorted(found, key=lambda each: each.__name__)


def value_of(kind: type, name: str) -> Any:
    """A value that is not the default."""
    if name == "sql":
        return _TEXTS[kind.__name__]
    return _OF_CLASS.get((kind.__name__, name), _VALUES.get(name))


def base_of(kind: type, name: str) -> dict[str, Any]:
    """The other parameters of a task that is given ``name``."""
    own = kind.__name__
    reads_text = own in _TEXTS and name in ("sql", "sources", "database")
    if reads_text:
        base: dict[str, Any] = {"sql": _TEXTS[own], "database": "a"}
        base |= {"sources": {"x": SOURCE}} if own in _READS else {}
        base |= {"mode": "dynamic"} if own == "InsertOverwriteOperator" else {}
    else:
        base = dict(_PARTS.get(own, {"target": "a.b"}))
    base |= _BESIDE.get(name, {}) | _BESIDE_OF_CLASS.get((own, name), {})
    base.pop(_INSTEAD.get((own, name), ""), None)
    return {each: value for each, value in base.items() if each != name}
