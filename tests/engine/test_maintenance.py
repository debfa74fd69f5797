"""Table care as a job: without a session, stored once, found again, refused where there is none."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.command import main
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    RemoveOrphanFilesSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.job.maintenance_job import MaintenanceJob
from spark_jobs.run import run
from tests.support.folder_connector.connector import open_folder_connector
from tests.support.paimon_tables import NAME, append, create, snapshot_ids

EXPIRE = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A table of three snapshots."""
    connector = open_connector(CatalogSpec("paimon", str(tmp_path)), {})
    create(connector, {"id": "int"})
    for number in range(3):
        append(connector, [{"id": number}], f"op-{number}")
        table = connector.metadata.load_table(NAME)
        connector.writes.release_guard(table, f"op-{number}")
    return tmp_path


def request(warehouse: Path, statement: Any = EXPIRE, **fields: Any) -> JobRequest:
    catalog = CatalogSpec("paimon", str(warehouse))
    return JobRequest("care-1", NAME, catalog, statement, **fields)


def ids(warehouse: Path) -> list[int]:
    return snapshot_ids(open_connector(CatalogSpec("paimon", str(warehouse)), {}))


def stored(warehouse: Path) -> JobResult:
    return JobResult.from_json((warehouse / "_operations/care-1.json").read_text())


def test_the_result_is_stored_and_found_by_a_retry(warehouse: Path) -> None:
    result = run(request(warehouse), None)

    assert result.status == "committed"
    assert result.maintenance is not None
    assert result.maintenance.snapshots == 2
    assert stored(warehouse) == result
    append(open_connector(CatalogSpec("paimon", str(warehouse)), {}), [{"id": 9}], "other")
    again = run(request(warehouse, origin=Origin(try_number=2)), None)
    assert again == result
    assert ids(warehouse) == [3, 4]


def test_other_work_of_the_same_id_is_refused(warehouse: Path) -> None:
    run(request(warehouse), None)

    other = request(warehouse, CreateTagSpec("t"), origin=Origin(try_number=2))
    result = run(other, None)

    assert result.error is not None
    assert result.error.code == "OPERATION_ID_REUSED"
    assert not (warehouse / "shop.db/orders/tag").exists()


def test_nothing_to_do_is_unchanged(warehouse: Path) -> None:
    assert run(request(warehouse, ExpireSnapshotsSpec()), None).status == "unchanged"


def test_a_dry_run_leaves_nothing(warehouse: Path) -> None:
    before = set(warehouse.rglob("*"))

    result = run(request(warehouse, dry_run=True), None)

    assert result.status == "dry_run"
    assert result.maintenance is not None
    assert result.maintenance.snapshots == 2
    assert set(warehouse.rglob("*")) == before


def test_the_main_program_needs_no_session(warehouse: Path) -> None:
    path = warehouse / "request.json"
    path.write_text(request(warehouse).to_json())

    assert main(["--no-session", "--request", str(path)]) == 0
    assert ids(warehouse) == [3]


def test_a_file_of_credentials_that_is_missing_is_named(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = warehouse / "request.json"
    path.write_text(request(warehouse).to_json())

    assert main(["--no-session", "--request", str(path), "--credentials", "gone.json"]) == 1
    assert "REQUEST_INVALID: --credentials: there is no file gone.json Remedy: " in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("has_session", [False, True])
def test_a_session_searches_for_orphans(
    warehouse: Path, spark: SparkSession, has_session: bool
) -> None:
    lost = warehouse / "shop.db/orders/bucket-0/data-lost"
    lost.touch()
    os.utime(lost, (0, 0))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = set(jobs())

    session = spark if has_session else None
    result = run(request(warehouse, RemoveOrphanFilesSpec()), session)

    assert result.maintenance is not None
    assert result.maintenance.files == ("bucket-0/data-lost",)
    assert not lost.exists()
    # Spark forgets the oldest jobs.
    assert bool(set(jobs()) - before) == has_session


def test_statements_on_rows_need_a_session(warehouse: Path) -> None:
    result = run(request(warehouse, DeleteSpec("t")), None)

    assert result.error is not None
    assert result.error.message == "delete: needs a Spark session"


def test_a_failure_is_stored(warehouse: Path) -> None:
    result = run(request(warehouse, CreateTagSpec("t", 9)), None)

    assert result.error is not None
    assert result.error.code == "SNAPSHOT_NOT_FOUND"
    assert stored(warehouse) == result


@pytest.mark.parametrize("statement", [SetCurrentSnapshotSpec(1), CherryPickSpec(1)])
def test_what_a_format_has_not_is_refused_by_name(warehouse: Path, statement: Any) -> None:
    before = ids(warehouse)

    result = run(request(warehouse, statement), None)

    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
    assert result.error.message.startswith(f"{statement.kind}: of a Paimon table, ")
    assert ids(warehouse) == before


def test_a_branch_from_begin_to_end(warehouse: Path) -> None:
    def done(statement: Any) -> JobResult:
        asked = replace(request(warehouse, statement), operation_id=statement.kind)
        result = run(asked, None)
        assert result.error is None, result.error
        return result

    assert done(CreateBranchSpec("b")).status == "committed"
    assert done(FastForwardSpec("b")).status == "unchanged"
    assert done(DeleteBranchSpec("b")).status == "committed"


@pytest.mark.parametrize("statement", [CreateBranchSpec("b"), FastForwardSpec("b")])
def test_branches_are_refused_by_name_where_there_are_none(tmp_path: Path, statement: Any) -> None:
    connector = open_folder_connector(str(tmp_path), 100)

    result = MaintenanceJob(request(tmp_path, statement), None, connector).run()

    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
    assert f"{statement.kind}: branches of tables of this catalog" in result.error.message


def test_a_connector_without_it_says_so(tmp_path: Path) -> None:
    connector = open_folder_connector(str(tmp_path), 100)

    result = MaintenanceJob(request(tmp_path), None, connector).run()

    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
