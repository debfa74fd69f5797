"""CREATE TABLE as a job: without a session, once, and with a stored result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.command import main
from spark_jobs.contract.alter_table import AddColumn, AlterTableSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.run import run
from tests.support.paimon_tables import NAME


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return folder


def request(warehouse: Path, *columns: ColumnSpec, operation_id: str = "create-1") -> JobRequest:
    catalog = CatalogSpec("paimon", str(warehouse))
    return JobRequest(operation_id, NAME, catalog, CreateTableSpec(columns))


def stored(warehouse: Path, operation_id: str) -> JobResult:
    path = warehouse / "_operations" / f"{operation_id}.json"
    return JobResult.from_json(path.read_text())


def test_the_main_program_needs_no_session(warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(request(warehouse, ColumnSpec("id", "BIGINT")).to_json())

    assert main(["--no-session", "--request", str(path)]) == 0

    assert stored(warehouse, "create-1").status == "committed"
    assert (warehouse / "shop.db/orders/schema/schema-0").is_file()


def test_a_retry_and_another_task_find_the_table(warehouse: Path) -> None:
    asked = request(warehouse, ColumnSpec("id", "BIGINT"))
    run(asked, None)

    assert run(asked, None).status == "unchanged"
    other = request(warehouse, ColumnSpec("id", "BIGINT"), operation_id="create-2")
    assert run(other, None).status == "unchanged"


def test_a_different_table_is_a_stored_error(warehouse: Path) -> None:
    run(request(warehouse, ColumnSpec("id", "BIGINT")), None)

    result = run(request(warehouse, ColumnSpec("id", "INT"), operation_id="create-2"), None)

    assert result.error is not None
    assert result.error.code == "TABLE_DIFFERS"
    assert stored(warehouse, "create-2").error == result.error


def test_a_retry_finds_the_table_that_was_altered_since(warehouse: Path) -> None:
    """A file may do both, and fail behind them."""
    asked = request(warehouse, ColumnSpec("id", "BIGINT"))
    run(asked, None)
    changes = AlterTableSpec((AddColumn("n", "INT"),))
    alter = JobRequest("alter", NAME, asked.catalog, changes)
    assert run(alter, None).status == "committed"

    assert run(asked, None).status == "unchanged"
    again = request(warehouse, ColumnSpec("id", "BIGINT"), operation_id="create-2")
    error = run(again, None).error
    assert error is not None
    assert error.code == "TABLE_DIFFERS"


def test_an_existing_table_can_be_kept_whatever_it_is(warehouse: Path) -> None:
    run(request(warehouse, ColumnSpec("id", "BIGINT")), None)
    other = request(warehouse, ColumnSpec("n", "INT"), operation_id="create-2")
    spec = CreateTableSpec((ColumnSpec("n", "INT"),), keep_existing=True)
    assert run(replace(other, statement=spec), None).status == "unchanged"
    fresh = replace(other, statement=spec, target=TableName("shop", "fresh"), operation_id="c-3")
    assert run(fresh, None).status == "committed"
