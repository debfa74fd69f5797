"""Results are looked for, and what a job left is cleared, in the connection's workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.models.taskinstance import TaskInstance

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.outcome import give_up
from spark_jobs.contract.operation_files import new_scratch_folder
from spark_jobs.contract.request import CatalogSpec
from tests.airflow.support import (
    PASSWORD,
    DagFile,
    FakeSubmitter,
    committed,
    connection,
    example_request,
)

pytestmark = pytest.mark.usefixtures("airflow_db")

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=table_source("shop.updates"),
    on="t.id = s.id",
    when=[when_matched().update_all()],
    dry_run={dry_run},
)
"""


@pytest.fixture
def workspace(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the warehouse."""
    folder = tmp_path / "work space"
    folder.mkdir()
    extra = {
        "warehouse": str(warehouse),
        "workspace": str(folder),
        "options": {"custom.secret-key": PASSWORD},
    }
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
    return folder


def run(dag_file: Callable[..., DagFile], dry_run: bool = False) -> TaskInstance:
    (ti,) = dag_file(MERGE.format(dry_run=dry_run)).run().get_task_instances()
    return ti


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_result_is_read_there(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path, workspace: Path
) -> None:
    ti = run(dag_file)

    assert ti.state == "success"
    assert ti.xcom_pull(task_ids="merge")["snapshot_id"] == 8
    assert files(workspace) == [f"_operations/{submitter.request.operation_id}.json"]
    assert files(warehouse) == []


def test_the_request_names_it_and_no_secret(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path, workspace: Path
) -> None:
    run(dag_file)

    catalog = submitter.request.catalog
    assert (catalog.warehouse, catalog.workspace) == (str(warehouse), str(workspace))
    assert PASSWORD not in submitter.request.to_json()


def test_the_result_of_a_dry_run_is_removed_there(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, workspace: Path
) -> None:
    submitter.outcomes = [lambda request: committed(request, status="dry_run")]

    assert run(dag_file, dry_run=True).state == "success"

    assert list(workspace.iterdir()) == []


def test_a_job_that_left_nothing_is_looked_for_there(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    submitter.outcomes = [lambda _: None]

    assert run(dag_file).state == "failed"

    place = f"{workspace}/_operations/{submitter.request.operation_id}.json"
    assert f"It left no result of this try at {place}" in capsys.readouterr().out


def test_giving_up_clears_scratch_there(workspace: Path, warehouse: Path) -> None:
    catalog = CatalogSpec("paimon", str(warehouse), workspace=str(workspace))
    request = example_request(catalog=catalog)
    scratch = workspace / new_scratch_folder(request.operation_id, 1)
    scratch.mkdir(parents=True)

    give_up([(request, PaimonHook())])

    assert not scratch.exists()


def test_without_the_folder_nothing_is_started(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace.rmdir()

    assert run(dag_file).state == "failed"

    assert submitter.jobs == []
    log = capsys.readouterr().out
    assert f"WAREHOUSE_NOT_FOUND: the workspace {workspace} is not a folder" in log
    assert "correct the workspace of the catalog connection" in log
