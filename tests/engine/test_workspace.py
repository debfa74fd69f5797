"""The workspace takes results, spilled sources and bad records; the warehouse has only tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec
from spark_jobs.contract.operation_files import new_scratch_folder
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Origin,
    Source,
    SqlSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import InsertAllAction, MergeCase, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.errors import NotSupportedError
from spark_jobs.run import run, run_and_hand_over
from tests.engine.test_conflicts import Writes
from tests.support.paimon_tables import NAME, create, read, snapshot_ids

ROWS = SqlSource("s", "SELECT CAST(id AS INT) AS id FROM range(5)")
NEW_ROWS = MergeSpec("s", "t.id = s.id", (MergeCase("not_matched", InsertAllAction()),), "t", "s")
RESULT = "_operations/op-1.json"


@dataclass(frozen=True)
class Lake:
    """A table without rows in a warehouse, and a workspace elsewhere."""

    warehouse: Path
    workspace: Path

    @property
    def catalog(self) -> CatalogSpec:
        return CatalogSpec("paimon", str(self.warehouse), workspace=str(self.workspace))

    def request(self, source: Source = ROWS, **fields: Any) -> JobRequest:
        return JobRequest("op-1", NAME, self.catalog, NEW_ROWS, (source,), **fields)

    def job(self, spark: SparkSession, request: JobRequest, finished: Callable[[], None]) -> Job:
        """A job during which ``finished`` is called once it has published."""
        connector = open_connector(self.catalog, {})
        writes = Writes(connector.writes, finished=finished)
        return Job(request, spark, replace(connector, writes=writes))

    def rows(self) -> list[int]:
        return [row["id"] for row in read(open_connector(self._tables, {}))]

    def snapshots(self) -> list[int]:
        return snapshot_ids(open_connector(self._tables, {}))

    @property
    def _tables(self) -> CatalogSpec:
        return replace(self.catalog, workspace=None)

    def beside_tables(self) -> list[str]:
        """What is in the warehouse, but no database."""
        return [path.name for path in self.warehouse.iterdir() if path.suffix != ".db"]

    def stored(self) -> list[str]:
        """The files in the workspace."""
        files = (path for path in self.workspace.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.workspace)) for path in files)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path / "warehouse", tmp_path / "work space")
    found.warehouse.mkdir()
    found.workspace.mkdir()
    create(open_connector(found.catalog, {}), {"id": "int"})
    return found


@pytest.mark.slow
def test_the_result_lands_in_the_workspace(spark: SparkSession, lake: Lake) -> None:
    result = run(lake.request(), spark)

    assert result.error is None, result.error
    assert lake.rows() == [0, 1, 2, 3, 4]
    assert lake.stored() == [RESULT]
    assert JobResult.from_json((lake.workspace / RESULT).read_text()) == result
    assert lake.beside_tables() == []


@pytest.mark.slow
def test_sources_are_spilled_into_the_workspace(spark: SparkSession, lake: Lake) -> None:
    seen: list[str] = []

    result = lake.job(spark, lake.request(), lambda: seen.extend(lake.stored())).run()

    assert result.error is None, result.error
    assert [name for name in seen if "/source-" in name and name.endswith(".parquet")]
    assert lake.stored() == [RESULT]
    assert lake.beside_tables() == []


@pytest.mark.slow
def test_bad_records_wait_in_the_workspace(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    landed, aside = tmp_path / "landed.csv", tmp_path / "aside"
    landed.write_text("id\n1\nx\n")
    source = FileSource(
        *("s", str(landed), "csv", {"header": "true"}, "id INT"),
        on_bad_rows="quarantine",
        quarantine=str(aside),
    )
    seen: list[str] = []

    job = lake.job(spark, lake.request(source), lambda: seen.extend(lake.stored()))
    result = job.run()

    assert result.error is None, result.error
    assert lake.rows() == [1]
    assert [name for name in seen if name.endswith(".jsonl")]
    assert lake.stored() == [RESULT]
    assert [path.name for path in aside.rglob("*.jsonl")] == ["s.jsonl"]
    assert lake.beside_tables() == []


@pytest.mark.slow
def test_a_retry_finds_its_result_there(spark: SparkSession, lake: Lake) -> None:
    first = run(lake.request(), spark)

    again = run(lake.request(origin=Origin(try_number=2)), spark)

    assert again == first
    assert lake.snapshots() == [1]
    assert lake.rows() == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_a_retry_finds_its_commit_from_another_workspace(spark: SparkSession, lake: Lake) -> None:
    class Killed(BaseException):
        """Ends the job at once."""

    def killed() -> None:
        raise Killed

    with pytest.raises(Killed):
        lake.job(spark, lake.request(), killed).run()
    moved = replace(lake, workspace=lake.warehouse)

    again = run(moved.request(origin=Origin(try_number=2)), spark)

    assert again.error is None, again.error
    assert again.new_snapshot_id == 1
    assert lake.rows() == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_a_dry_run_hands_its_result_over_there(spark: SparkSession, lake: Lake) -> None:
    request = lake.request(dry_run=True)

    result = run_and_hand_over(request, spark, {}, Progress(), None)

    assert result.status == "dry_run"
    assert lake.stored() == ["_dry_run-op-1/result.json"]
    assert lake.beside_tables() == []
    assert lake.snapshots() == []


def test_leftovers_are_removed_there(lake: Lake) -> None:
    left = lake.workspace / new_scratch_folder("op-0", 1)
    left.mkdir(parents=True)
    (left / "rows.parquet").write_text("rows of a source")
    for path in (left / "rows.parquet", left):
        os.utime(path, (0, 0))
    request = JobRequest("care-1", NAME, lake.catalog, RemoveOrphanFilesSpec())

    result = run(request, None)

    assert result.maintenance is not None, result.error
    assert result.maintenance.leftovers == 1
    assert lake.stored() == ["_operations/care-1.json"]
    assert lake.beside_tables() == []


@pytest.mark.slow
def test_a_workspace_that_is_not_there_is_refused(spark: SparkSession, lake: Lake) -> None:
    lake.workspace.rmdir()

    result = run(lake.request(), spark)

    assert result.error is not None
    assert result.error.code == "WAREHOUSE_NOT_FOUND"
    assert f"The workspace {lake.workspace} does not exist" in result.error.message
    assert "a new workspace" in result.error.remedy
    assert lake.snapshots() == []
    assert not lake.workspace.exists()
    assert lake.beside_tables() == []


def test_a_workspace_on_other_storage_is_refused(lake: Lake) -> None:
    catalog = replace(lake.catalog, workspace="oss://bucket/work")

    with pytest.raises(NotSupportedError, match="workspace oss://bucket/work is on storage"):
        open_connector(catalog, {})
