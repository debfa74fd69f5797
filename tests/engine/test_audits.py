"""What becomes of an audit when its table, its files or its target are not what they were."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.guards import Guards
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.side_outputs import AUDIT_COLUMNS
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job import side_job
from spark_jobs.engine.job.side_job import SideJob
from spark_jobs.engine.write import expected_partitions
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.run import run
from tests.support.audited_tables import TARGET, AuditedTable
from tests.support.audits import table_rows
from tests.support.killed_jobs import Steps
from tests.support.turns import has_turn

_ROWS = "(1, 'a', 1), (2, 'a', 1)"
_KIND = "append" if has_turn(0, 2) else "iceberg-mor"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> AuditedTable:
    return AuditedTable(spark, _KIND, tmp_path)


def _published(behind: bool = True, number: int = 1) -> Steps:
    """The driver dies at the commit of its target, or, as ``number`` 2, of the audit."""
    return Steps(number, behind=behind, only="finish_merge")


def _folders(table: AuditedTable) -> list[Path]:
    return list(table.warehouse.glob("_operations/*.rows"))


def _orphans(table: AuditedTable) -> None:
    """Remove what is left of jobs that were killed days ago."""
    moment = time.time() - 30 * 86_400
    for path in (*table.warehouse.glob("_operations/**/*"), table.warehouse / "_operations"):
        os.utime(path, (moment, moment))
    statement = RemoveOrphanFilesSpec("1 d")
    result = run(JobRequest(str(uuid.uuid4()), TARGET, table.catalog, statement), None)
    assert result.error is None, result.error


@pytest.mark.slow
@pytest.mark.by_turns(5, 0)
def test_files_that_are_gone_are_an_error(table: AuditedTable) -> None:
    request = table.merge("op", _ROWS)
    table.tried(request, 1, _published())
    (folder,) = _folders(table)
    shutil.rmtree(folder)

    lost = table.tried(request, 2)

    assert lost is not None
    assert lost.error is not None
    assert (lost.error.code, lost.error.retryable) == ("SIDE_ROWS_LOST", False)
    assert "db.target is published, as snapshot" in lost.error.message
    assert "2 rows for db.audit are gone" in lost.error.message
    assert table.audit() == []


@pytest.mark.slow
@pytest.mark.by_turns(5, 1)
def test_orphan_removal_keeps_what_the_audit_has_not(table: AuditedTable) -> None:
    request = table.merge("op", _ROWS)
    table.tried(request, 1, _published(behind=False))
    assert len(_folders(table)) == 1
    first = table.tried(table.merge("before", "(7, 'a', 1)"), 1)
    assert first is not None

    table.tried(request, 2, _published())
    _orphans(table)
    assert len(_folders(table)) >= 1
    done = table.tried(request, 3)

    assert done is not None
    assert (done.status, done.error) == ("committed", None)
    assert len(table.audit()) == 3
    _orphans(table)
    assert _folders(table) == []


@pytest.mark.slow
@pytest.mark.by_turns(5, 2)
def test_a_cleared_task_makes_up_for_the_audit(table: AuditedTable) -> None:
    table.tried(table.merge("op", _ROWS, "task"), 1, _published())
    assert table.audit() == []
    cleared = table.merge("cleared", "(1, 'b', 1)", "task")

    failed = table.tried(cleared, 2)
    assert failed is not None
    assert failed.error is not None
    assert failed.error.code == "ENDED_TRY_COMMITTED"
    assert [row["operation_id"] for row in table.audit()] == ["op", "op"]
    done = table.tried(replace(cleared, after_ended_try="run"), 3)

    assert done is not None
    assert done.error is None
    operations = [(row["operation_id"], row["operation"]) for row in table.audit()]
    assert sorted(operations) == [("cleared", "update"), ("op", "insert"), ("op", "insert")]
    assert _folders(table) == []


@pytest.mark.slow
@pytest.mark.by_turns(5, 3)
def test_a_conflict_in_the_audit_is_no_conflict_of_the_statement(table: AuditedTable) -> None:
    request = table.merge("op", _ROWS)
    conflict = CommitError(ErrorCode.COMMIT_CONFLICT, "somebody altered db.audit")
    with (
        mock.patch.object(SideJob, "_attempted", side_effect=conflict),
        mock.patch.object(side_job, "back_off"),
    ):
        failed = table.tried(request, 1)
    assert failed is not None
    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("COMMIT_OUTCOME_UNKNOWN", True)
    assert "its audit in db.audit is not: somebody altered db.audit" in failed.error.message

    done = table.tried(request, 2)

    assert done is not None
    assert (done.status, done.error) == ("committed", None)
    assert len(table.audit()) == 2


@pytest.mark.slow
@pytest.mark.by_turns(5, 3)
def test_a_target_that_was_rolled_back_is_audited_again(table: AuditedTable) -> None:
    first = table.tried(table.merge("first", "(9, 'a', 1)"), 1)
    assert first is not None
    base = first.new_snapshot_id
    assert base is not None
    request = table.merge("op", _ROWS)
    table.tried(request, 1, _published(number=2))
    maintenance = table.open().maintenance
    assert maintenance is not None
    maintenance.roll_back(TARGET, RollbackSpec(base, force=True), dag_id="", dry_run=False)

    again = table.tried(request, 2)

    assert again is not None
    assert again.error is None
    assert len(table.rows()) == 3
    own = [row["snapshot_id"] for row in table.audit() if row["operation_id"] == "op"]
    # Paimon gives the id of a snapshot again.
    assert own.count(again.new_snapshot_id) == (4 if _KIND == "append" else 2)
    assert len(own) == 4


@pytest.mark.slow
@pytest.mark.by_turns(5, 4)
def test_a_statement_that_changes_nothing_leaves_nothing(table: AuditedTable) -> None:
    before = table.audit()
    request = table.merge("none", "(1, 'a', 0)")
    request = replace(
        request, sources=(replace(request.sources[0], query="SELECT 1L id, 'a' v, 1 n LIMIT 0"),)
    )

    unchanged = table.tried(request, 1)

    assert unchanged is not None
    assert (unchanged.status, unchanged.error) == ("unchanged", None)
    assert table.audit() == before
    assert _folders(table) == []


@pytest.mark.slow
@pytest.mark.by_turns(5, 0)
def test_an_audit_has_any_number_of_new_partitions(
    table: AuditedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is published by then: a limit would keep its audit away for good."""
    monkeypatch.setattr(expected_partitions, "MAX_NEW_PARTITIONS", 1)
    columns = tuple(ColumnSpec(name, kind) for name, kind in AUDIT_COLUMNS.items())
    by_key = TableName("db", "by_key")
    table.open().metadata.create_table(by_key, CreateTableSpec(columns, ("row_key",)))
    request = replace(table.merge("op", _ROWS), guards=Guards(audit_table=str(by_key)))

    done = table.tried(request, 1)

    assert done is not None
    assert done.error is None
    rows = table_rows(table.spark, table.open(), by_key)
    assert sorted(row["row_key"] for row in rows) == ['{"id":1}', '{"id":2}']


@pytest.mark.parametrize(
    ("columns", "key", "code", "says"),
    [
        (None, (), "TABLE_NOT_FOUND", "CREATE TABLE db.other (`operation_id` STRING, "),
        ({**AUDIT_COLUMNS, "clause": None}, (), "COLUMN_NOT_FOUND", "no column clause"),
        ({**AUDIT_COLUMNS, "clause": "BIGINT"}, (), "TYPE_MISMATCH", "has to be INT"),
        ({**AUDIT_COLUMNS, "row_key": "STRING NOT NULL"}, (), "TYPE_MISMATCH", "has to take NULL"),
        ({**AUDIT_COLUMNS, "why": "STRING NOT NULL"}, (), "EXPRESSION_INVALID", "column why"),
        (dict(AUDIT_COLUMNS), ("operation_id",), "NOT_SUPPORTED", "has a primary key"),
    ],
)
def test_a_table_that_is_no_audit_table(
    columns: dict[str, Any] | None,
    key: tuple[str, ...],
    code: str,
    says: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    table = AuditedTable(spark, "append", tmp_path)
    other = TableName("db", "other")
    if columns is not None:
        given = tuple(
            ColumnSpec(name, kind.removesuffix(" NOT NULL"), nullable="NOT NULL" not in kind)
            for name, kind in columns.items()
            if kind
        )
        given = tuple(replace(e, nullable=False) if e.name in key else e for e in given)
        options = {"bucket": "1"} if key else {}
        table.open().metadata.create_table(other, CreateTableSpec(given, (), key, options))
    request = replace(table.merge("op", _ROWS), guards=Guards(audit_table=str(other)))

    refused = table.tried(request, 1)

    assert refused is not None
    assert refused.error is not None
    assert refused.error.code == code
    assert says in f"{refused.error.message} {refused.error.remedy}"
    assert table.rows() == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("db.target", "is the table that the statement changes"),
        ("DB.`Target`", "is the table that the statement changes"),
        ("db.target$branch_main", "is the table that the statement changes"),
        ("audit", "is not database.table"),
        ("lake.db.audit", "of the statement's own connection"),
    ],
)
def test_a_name_that_is_none_of_an_audit_table(name: str, says: str, tmp_path: Path) -> None:
    table = object.__new__(AuditedTable)
    table.kind, table.warehouse = "append", tmp_path
    with pytest.raises(JobError) as raised:
        replace(table.merge("op", _ROWS), guards=Guards(audit_table=name))
    assert raised.value.places == ("audit_table",)
    assert says in str(raised.value)
