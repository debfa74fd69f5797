"""A dry run through Airflow: what is asked of the job, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics, PartitionMetrics
from spark_jobs.errors import RequestError
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db")]

STATEMENTS = {
    "MergeInto": 'source=table_source("a.b"), on="t.id = s.id", when=[when_matched().delete()]',
    "DeleteFrom": 'where="id = 1"',
    "Update": 'set={"n": "1"}',
    "InsertInto": 'source=table_source("a.b")',
    "InsertOverwrite": 'source=table_source("a.b"), mode="dynamic"',
    "TruncateTable": "last_writer_wins=False",
    "DropPartitions": 'partitions=[{"day": "{{ params.day }}"}]',
}
DELETE = 'DeleteFromOperator(task_id="t", target="shop.orders", where="id = 1", dry_run={})'
PARAMS = 'params={{"dry_run": {}, "day": "2026-01-31"}}'


def tried(request: JobRequest) -> JobResult:
    metrics = Metrics(deleted=2, partitions_changed=1)
    day = "day=2026-01-31"
    return committed(
        request,
        status="dry_run",
        new_snapshot_id=None,
        metrics=metrics,
        partitions=(day,),
        partition_metrics=(PartitionMetrics(day, deleted=2),),
    )


def events(run: DagRun) -> list[AssetEvent]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).filter(AssetEvent.source_dag_id == run.dag_id)
        return found.all()


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_writing_operator_has_it(
    name: str, dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path
) -> None:
    submitter.outcomes = [tried]
    parameters = f'task_id="t", target="shop.orders", {STATEMENTS[name]}'
    body = f'{name}Operator({parameters}, dry_run="{{{{ params.dry_run }}}}")'

    run = dag_file(body, arguments=PARAMS.format(True)).run()

    assert run.state == "success"
    assert submitter.request.dry_run is True
    (ti,) = run.get_task_instances()
    result = ti.xcom_pull(task_ids="t")
    assert (result["status"], result["snapshot_id"]) == ("dry_run", None)
    assert result["partitions"] == ["day=2026-01-31"]
    assert result["metrics"]["deleted"] == 2
    assert result["partition_metrics"][0]["deleted"] == 2
    assert events(run) == []
    assert list(warehouse.iterdir()) == []


@pytest.mark.parametrize("value", [False, "false", "False"])
def test_a_switch_that_is_off_is_a_real_run(
    value: bool | str, dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path
) -> None:
    body = DELETE.format('"{{ params.dry_run }}"')
    run = dag_file(body, arguments=PARAMS.format(repr(value))).run()

    assert submitter.request.dry_run is False
    assert len(events(run)) == 1
    assert [path.name for path in warehouse.iterdir()] == ["_operations"]


def test_the_real_run_is_another_operation(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path
) -> None:
    submitter.outcomes = [tried, committed]
    tasks = [DELETE.format(value).replace('"t"', f'"{value}"') for value in (True, False)]
    dag_file(" >> ".join(tasks)).run()

    dry, real = (job.work for job in submitter.jobs)
    assert (dry.dry_run, real.dry_run) == (True, False)
    assert dry.operation_id != real.operation_id
    assert dry.digest() != real.digest()


def test_what_fails_leaves_nothing_either(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = ErrorInfo("SOURCE_EMPTY", "The source has no rows.", "", retryable=False)
    submitter.outcomes = [lambda request: failed(request, error)]
    submitter.process_fails = True

    run = dag_file(DELETE.format(True)).run()

    assert run.state == "failed"
    assert "SOURCE_EMPTY" in capsys.readouterr().out
    assert list(warehouse.iterdir()) == []
    (ti,) = run.get_task_instances()
    told = ti.xcom_pull(task_ids="t", key="merge_dry_run_error")
    assert (told["code"], told["message"]) == ("SOURCE_EMPTY", "The source has no rows.")
    page = ti.xcom_pull(task_ids="t", key="_link_merge_table")
    assert page.startswith(f"/lakehouse/preview?dag_id={run.dag_id}&")


def test_a_value_that_is_none_is_refused_when_the_dag_is_parsed() -> None:
    with pytest.raises(RequestError, match="dry_run: 'perhaps' is neither true nor false"):
        DeleteFromOperator(task_id="t", target="a.b", dry_run="perhaps")
