"""ALTER TABLE as a job: without a session, once, with a stored result and a dry run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.command import main
from spark_jobs.contract.alter_table import (
    AddColumn,
    AlterTableReport,
    AlterTableSpec,
    RenameColumn,
    TableChange,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.run import run
from tests.support.paimon_tables import NAME

CHANGES = (RenameColumn("id", "number"), AddColumn("id", "STRING"))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    spec = CreateTableSpec((ColumnSpec("id", "BIGINT"),))
    run(JobRequest("create", NAME, CatalogSpec("paimon", str(folder)), spec), None)
    return folder


def request(
    warehouse: Path,
    *changes: TableChange,
    operation_id: str = "alter-1",
    number: int = 1,
    dry_run: bool = False,
) -> JobRequest:
    return JobRequest(
        operation_id,
        NAME,
        CatalogSpec("paimon", str(warehouse)),
        AlterTableSpec(changes or CHANGES),
        origin=Origin(try_number=number),
        dry_run=dry_run,
    )


def schemas(warehouse: Path) -> list[str]:
    return sorted(path.name for path in (warehouse / "shop.db/orders/schema").iterdir())


def stored(warehouse: Path, operation_id: str) -> JobResult:
    return JobResult.from_json((warehouse / "_operations" / f"{operation_id}.json").read_text())


def test_the_main_program_needs_no_session(warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(request(warehouse).to_json())

    assert main(["--no-session", "--request", str(path)]) == 0

    result = stored(warehouse, "alter-1")
    assert result.status == "committed"
    assert result.alteration is not None
    assert [(each.before, each.after) for each in result.alteration.parts] == [
        ("id BIGINT", "number BIGINT"),
        (None, "id STRING"),
    ]
    assert not result.made_table
    assert schemas(warehouse) == ["schema-0", "schema-1"]


def test_a_retry_tells_the_same_and_changes_nothing(warehouse: Path) -> None:
    first = run(request(warehouse), None)

    second = run(request(warehouse, number=2), None)

    assert replace(second, metrics=first.metrics) == first
    assert schemas(warehouse) == ["schema-0", "schema-1"]


def test_a_driver_that_dies_before_it_stores_its_result(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(OperationLog, "store", dies)
        with pytest.raises(KeyboardInterrupt):
            run(request(warehouse), None)
    assert schemas(warehouse) == ["schema-0", "schema-1"]

    result = run(request(warehouse, number=2), None)

    assert (result.error, result.status) == (None, "committed")
    assert result.alteration is not None
    assert len(result.alteration.parts) == 2
    assert schemas(warehouse) == ["schema-0", "schema-1"]
    assert not list((warehouse / "_operations").glob("*change*"))


def test_a_dry_run_shows_old_and_new_and_stores_nothing(warehouse: Path) -> None:
    before = sorted(path.name for path in warehouse.rglob("*"))

    result = run(request(warehouse, dry_run=True), None)

    assert result.status == "dry_run"
    assert result.alteration == run(request(warehouse), None).alteration
    assert before == sorted({*before} & {path.name for path in warehouse.rglob("*")})


def test_what_is_as_it_shall_be_is_unchanged(warehouse: Path) -> None:
    result = run(request(warehouse, AddColumn("ID", "BIGINT", if_not_exists=True)), None)

    assert (result.status, result.alteration) == ("unchanged", AlterTableReport())


def test_a_failure_is_a_stored_error(warehouse: Path) -> None:
    result = run(request(warehouse, RenameColumn("gone", "x")), None)

    assert result.error is not None
    assert result.error.code == "COLUMN_NOT_FOUND"
    assert stored(warehouse, "alter-1").error == result.error
    assert schemas(warehouse) == ["schema-0"]


def test_a_report_has_room_for_so_much(warehouse: Path) -> None:
    many = [AddColumn(f"c{'x' * 200}{number}", "INT") for number in range(400)]

    result = run(request(warehouse, *many), None)

    assert result.alteration is not None
    assert result.alteration.omitted > 0
    assert len(result.alteration.parts) + result.alteration.omitted == 400
    assert len(json.dumps(result.to_json())) < 65_536
