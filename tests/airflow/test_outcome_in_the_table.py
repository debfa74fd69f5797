"""A job that commits and dies before it stores its result has done its work all the same."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.taskinstance import TaskInstance

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.metadata.operations import read_result_of_try
from airflow_provider_merge.operators._shared import outcome
from spark_jobs.contract.properties import metrics_property, operation_properties
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics
from tests.airflow.support import DagFile, FakeSubmitter, connection, failed
from tests.airflow.test_metadata import Table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db")]

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=table_source("shop.updates"),
    on="t.id = s.id",
    when=[when_matched().update_all()],
    retries={retries},
)
"""


OTHER = "other-operation"


def commit(request: JobRequest, table: Table, snapshot_id: int = 8, **changes: Any) -> None:
    """What a job that dies after its commit leaves: guard and snapshot, no result."""
    properties = {
        **operation_properties(request, snapshot_id - 1),
        **metrics_property(Metrics(updated=2, seconds={"join": 0.5})),
        **changes,
    }
    table.guard(request.operation_id, snapshot_id - 1)
    table.add(snapshot_id, properties=properties)
    for name in (request.operation_id, OTHER):
        table.write(f"../../_operations/{name}-{'0' * 32}/source/0.parquet", "rows of the source")
    table.write(f"../../_operations/.{request.operation_id}.json.{'0' * 32}.tmp", "half")


@pytest.fixture
def table(warehouse: Path) -> Table:
    return Table(str(warehouse / "shop.db" / "orders"))


@pytest.fixture
def run(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, table: Table
) -> Callable[..., TaskInstance]:
    """Runs the task with a job that commits, as changed, and fails; returns the task instance."""
    submitter.process_fails = True

    def start(retries: int = 0, job: Callable[..., Any] = commit, **changes: Any) -> TaskInstance:
        submitter.outcomes = [functools.partial(job, table=table, **changes)]
        body = MERGE.format(retries=retries)
        dag_run = dag_file(body, arguments="default_args={'retry_delay': 0}").run()
        (ti,) = dag_run.get_task_instances()
        return ti

    return start


def test_success_without_any_retry(
    run: Callable[..., TaskInstance],
    submitter: FakeSubmitter,
    warehouse: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ti = run()
    assert ti.state == "success"
    value = ti.xcom_pull(task_ids="merge")
    assert (value["status"], value["base_snapshot_id"], value["snapshot_id"]) == ("committed", 7, 8)
    assert value["metrics"]["updated"] == 2
    assert "committed snapshot 8 of shop.orders and ended before" in caplog.text
    stored = read_result_of_try(submitter.request, {})
    assert stored.new_snapshot_id == 8, "a later try finds the result where a job leaves it"
    assert not list(warehouse.glob("shop.db/orders/consumer/*")), "the base may expire again"
    files = sorted(path.name for path in warehouse.glob("_operations/*"))
    own = f"{submitter.request.operation_id}.json"
    assert files == sorted([own, f"{OTHER}-{'0' * 32}"]), "rows of the source are gone"


def test_process_that_ended_well_without_storing_its_result(
    run: Callable[..., TaskInstance], submitter: FakeSubmitter
) -> None:
    submitter.process_fails = False
    assert run().state == "success"


def test_last_try_finds_the_commit_of_an_earlier_one(
    run: Callable[..., TaskInstance], submitter: FakeSubmitter
) -> None:
    ti = run(retries=1, **{"merge.try-number": "0"})
    assert ti.state == "success"
    assert len(submitter.jobs) == 1


@pytest.mark.parametrize(
    "changes",
    [{"merge.request-digest": "0" * 64}, {"merge.retries": "5"}, {"merge.try-number": "2"}],
    ids=repr,
)
def test_commit_of_other_work_is_refused(
    run: Callable[..., TaskInstance],
    submitter: FakeSubmitter,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
) -> None:
    assert run(retries=1, **changes).state == "failed"
    assert len(submitter.jobs) == 1, "the error is final"
    assert "OPERATION_ID_REUSED" in capsys.readouterr().out


def test_commit_whose_audit_is_missing_is_no_success(
    run: Callable[..., TaskInstance], submitter: FakeSubmitter, caplog: pytest.LogCaptureFixture
) -> None:
    side = [{"kind": "audit", "table": "shop.audit", "folder": "_operations/x.rows", "rows": 1}]
    assert run(retries=1, **{"merge.side-outputs": json.dumps(side)}).state == "failed"
    assert len(submitter.jobs) == 2, "the next try looks after it"
    assert "the next try looks after shop.audit" in caplog.text


def test_another_operations_commit_is_no_success(
    run: Callable[..., TaskInstance], submitter: FakeSubmitter
) -> None:
    assert run(retries=1, **{"merge.operation-id": "other"}).state == "failed"
    assert len(submitter.jobs) == 2


def test_table_that_can_not_be_read_does_not_hide_the_failure(
    run: Callable[..., TaskInstance],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def dies(request: JobRequest, table: Table) -> None:
        table.guard(request.operation_id, 1)
        table.write("snapshot/snapshot-2", "{")

    assert run(job=dies).state == "failed"
    assert "METADATA_UNREADABLE" in caplog.text
    assert "SPARK_FAILED: " in capsys.readouterr().out


def test_storage_that_refuses_to_be_tidied_up_spoils_nothing(
    run: Callable[..., TaskInstance],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only for this worker")

    monkeypatch.setattr(outcome, "store_result", refuse)
    assert run().state == "success"
    assert "read-only for this worker" in caplog.text


def test_stored_error_of_this_try_comes_first(
    run: Callable[..., TaskInstance], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(request: JobRequest, table: Table) -> JobResult:
        return failed(request, ErrorInfo("COMMIT_CONFLICT", "another writer", "", retryable=True))

    assert run(job=fails).state == "failed"
    assert "COMMIT_CONFLICT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "location"),
    [
        ({"warehouse": "/lake/"}, "/lake/shop.db/orders"),
        ({"warehouse": "file:///la%20ke"}, "file:///la%20ke/shop.db/orders"),
        ({"warehouse": "memory://b/w"}, "memory://b/w/shop.db/orders"),
        ({"warehouse": "lake", "metastore": "rest", "uri": "http://host"}, None),
    ],
)
def test_location_of_the_table(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, str], location: str | None
) -> None:
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=json.dumps(extra))
    hook = PaimonHook()
    snapshots = hook._snapshots_of(TableName("shop", "orders"))
    if location is None:
        assert snapshots is None
        assert hook.recorded_result(TableName("shop", "orders"), "any") is None
    else:
        assert snapshots.location == location
