"""The outcome is what the result file says: success, a final error, or an error to retry."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.models.taskinstance import TaskInstance

from airflow_provider_merge.exceptions import airflow_exception
from airflow_provider_merge.metadata.operations import result_location
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed, store

pytestmark = pytest.mark.usefixtures("airflow_db", "warehouse")

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
DUPLICATES = ErrorInfo(
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
    "key id=3, clauses 1 and 2",
    "Deduplicate.",
    retryable=False,
)
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "snapshot 9 changed the region", "", retryable=True)


def run(dag_file: Callable[..., DagFile], retries: int = 0) -> TaskInstance:
    """The task's final state; dag.test() runs retries at once when their delay is zero."""
    body = MERGE.format(retries=retries)
    dag_run = dag_file(body, arguments="default_args={'retry_delay': 0}").run()
    (ti,) = dag_run.get_task_instances()
    return ti


def test_final_error_is_not_retried(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [lambda request: failed(request, DUPLICATES)]
    submitter.process_fails = True
    ti = run(dag_file, retries=1)
    assert ti.state == "failed"
    assert len(submitter.jobs) == 1
    log = capsys.readouterr().out
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES: key id=3, clauses 1 and 2" in log
    assert "Remedy: Deduplicate." in log


def test_passing_error_is_retried_under_the_same_id(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [lambda request: failed(request, CONFLICT), committed]
    ti = run(dag_file, retries=1)
    assert ti.state == "success"
    first, second = (job.work for job in submitter.jobs)
    assert first.operation_id == second.operation_id
    assert first.digest() == second.digest()
    assert [each.origin.try_number for each in (first, second)] == [1, 2]
    assert {each.origin.retries for each in (first, second)} == {1}


def test_no_result_is_retryable_and_says_where_to_look(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [lambda _: None]
    submitter.process_fails = True
    ti = run(dag_file, retries=1)
    assert ti.state == "failed"
    assert len(submitter.jobs) == 2
    log = capsys.readouterr().out
    assert "SPARK_FAILED: Cannot execute: spark-submit." in log
    assert f"/_operations/{submitter.jobs[0].work.operation_id}.json" in log
    assert f"Where: task {ti.dag_id}.{ti.task_id}" in log
    assert "driver's log" in log


def test_process_that_ends_well_without_a_result_is_an_error(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [lambda _: None]
    assert run(dag_file).state == "failed"


@pytest.mark.parametrize("earlier", ["failed", "committed"])
def test_result_of_an_earlier_try_is_not_taken_for_a_failed_one(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, earlier: str
) -> None:
    def outcome(request: JobRequest) -> None:
        old = replace(request, origin=replace(request.origin, try_number=0))
        store(old, committed(old) if earlier == "committed" else failed(old, DUPLICATES))

    submitter.outcomes = [outcome]
    submitter.process_fails = True
    ti = run(dag_file, retries=1)
    assert ti.state == "failed"
    assert len(submitter.jobs) == 2, "retryable: the job itself finds an earlier commit"


def test_refused_failure_beside_an_earlier_success(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(request: JobRequest) -> None:
        store(request, committed(request, try_number=0))
        reused = ErrorInfo("OPERATION_ID_REUSED", "another digest", "", retryable=False)
        path = Path(result_location(request, refused=True))
        path.write_text(failed(request, reused).to_json())

    submitter.outcomes = [outcome]
    submitter.process_fails = True
    assert run(dag_file, retries=1).state == "failed"
    assert len(submitter.jobs) == 1
    assert "OPERATION_ID_REUSED: another digest" in capsys.readouterr().out


def test_job_that_found_its_earlier_commit_returns_it(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    found = functools.partial(committed, try_number=1)
    submitter.outcomes = [lambda request: failed(request, CONFLICT), found]
    ti = run(dag_file, retries=1)
    assert ti.state == "success"
    assert ti.xcom_pull(task_ids="merge")["snapshot_id"] == 8


def test_committed_although_the_process_failed_afterwards(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, caplog: pytest.LogCaptureFixture
) -> None:
    submitter.process_fails = True
    assert run(dag_file).state == "success"
    assert "then its process failed" in caplog.text


def test_result_of_another_request_is_refused(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [functools.partial(committed, request_digest="0" * 64)]
    assert run(dag_file, retries=1).state == "failed"
    assert len(submitter.jobs) == 1
    assert "OPERATION_ID_REUSED" in capsys.readouterr().out


def test_unreadable_result_is_an_error(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(request: JobRequest) -> None:
        path = Path(result_location(request))
        path.parent.mkdir()
        path.write_text('{"version": 1, "status": "com')

    submitter.outcomes = [outcome]
    assert run(dag_file).state == "failed"
    assert "not a JSON document" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("site", "page"),
    [
        ("", "docs/errors.md#commit_conflict"),
        ("https://docs.test/merge/", "https://docs.test/merge/errors.html#commit_conflict"),
    ],
)
def test_an_error_leads_to_what_the_documentation_says_of_it(
    monkeypatch: pytest.MonkeyPatch, site: str, page: str
) -> None:
    monkeypatch.setenv("AIRFLOW__MERGE__DOCS_URL", site)
    info = ErrorInfo("COMMIT_CONFLICT", "Others were faster.", "", retryable=True)
    assert str(airflow_exception(info)).splitlines()[-1] == f"More: {page}"
