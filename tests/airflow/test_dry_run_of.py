"""``dry_run_of``: a preview goes by the mark of the task that it foretells, found when parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.marks import mark_name
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import RequestError
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request

IMPORTS = """
from airflow.sdk import TaskGroup
from airflow_provider_merge.operators.sources import new_files_source
from airflow_provider_merge.operators.statement_list import insert_into
"""
FILES = 'new_files_source("/landing", "csv", start="all", schema="id INT")'
PLAIN = 'table_source("shop.updates")'
ASKED = 'target="shop.orders", by_name=True, source={}'
TASK = 'InsertIntoOperator(task_id="{}", {}, {})'
LISTED = 'insert_into("orders", {}), delete_from("old", target="shop.old", where="id = 1")'
LIST = 'StatementsOperator(task_id="{}", statements=[{}], {})'


def _insert(task_id: str, more: str = "", source: str = FILES) -> str:
    return TASK.format(task_id, ASKED.format(source), more)


def _list(task_id: str, more: str = "", source: str = FILES) -> str:
    return LIST.format(task_id, LISTED.format(ASKED.format(source)), more)


def _result(request: JobRequest) -> JobResult:
    return committed(request, status="dry_run") if request.dry_run else committed(request)


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
@pytest.mark.parametrize(
    "named",
    ['dry_run_of="load"', "dry_run_of=load", 'dry_run_of="{{ params.of }}", params={"of": "load"}'],
)
def test_the_mark_is_that_of_the_named_task(
    named: str, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [_result]
    preview = _insert("preview", f"dry_run=True, {named}")

    assert (
        dag_file(f"{IMPORTS}load = {_insert('load')}\n{preview} >> load").run().state == "success"
    )

    first, second = (job.work for job in submitter.jobs)
    assert isinstance(first, JobRequest)
    assert isinstance(second, JobRequest)
    assert (first.dry_run, first.origin.task_id) == (True, "preview")
    names = [mark_name(each.origin, each.sources[0].name) for each in (first, second)]
    assert names[0] == names[1]
    assert first.part_digests() == second.part_digests()


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_list_goes_by_the_marks_of_another_list(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [_result]
    preview = _list("preview", 'dry_run=True, dry_run_of="load"')

    assert dag_file(f"{IMPORTS}{preview} >> {_list('load')}").run().state == "success"

    first, second = (job.work for job in submitter.jobs)
    assert isinstance(first, JobBatch)
    assert isinstance(second, JobBatch)
    assert [each.origin.dry_run_of for each in first.requests] == ["load", ""]
    one, other = first.requests[0], second.requests[0]
    assert mark_name(one.origin, "s") == mark_name(other.origin, "s")


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("preview", "more", "problem"),
    [
        (_insert("preview", 'dry_run=True, dry_run_of="lod"'), "", "the DAG has no task 'lod'"),
        (
            _insert("preview", 'dry_run="plan", dry_run_of="insert"'),
            f'with TaskGroup("day"):\n    {_insert("insert")}',
            "Did you mean day.insert?",
        ),
        (_list("preview", 'dry_run=True, dry_run_of="lod"'), "", "Did you mean load?"),
        (_list("preview", 'dry_run=True, dry_run_of="load"'), "", "is a InsertIntoOperator, and"),
        (
            _insert("preview", 'dry_run=True, dry_run_of="preview"'),
            "",
            "task 'preview' is a dry run, too",
        ),
    ],
)
def test_a_task_that_is_not_there_is_told_when_the_dag_is_parsed(
    preview: str, more: str, problem: str, dag_file: Callable[..., DagFile]
) -> None:
    file = dag_file(f"{IMPORTS}{_insert('load')}\n{more}\n{preview}")
    try:
        errors = DagBag(str(file.path)).import_errors
    finally:
        file.path.unlink()
    (text,) = errors.values()
    assert "task 'preview': dry_run_of: " in text
    assert problem in text


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("preview", "problem"),
    [
        (
            _insert("preview", 'dry_run_of="load"'),
            "only a dry run goes by the mark of another task",
        ),
        (
            _insert("preview", 'dry_run=True, dry_run_of="load"', PLAIN),
            "no source is read incrementally",
        ),
        (_insert("preview", "dry_run=True, dry_run_of=3"), "expected text"),
        (_insert("preview", 'dry_run=True, dry_run_of=" "'), "empty"),
    ],
)
def test_a_mark_that_is_not_read_is_told_when_the_dag_is_parsed(
    preview: str, problem: str, dag_file: Callable[..., DagFile]
) -> None:
    with pytest.raises(RequestError, match="dry_run_of") as raised:
        dag_file(f"{IMPORTS}{_insert('load')}\n{preview}").dag()
    assert problem in str(raised.value)


def test_a_job_moves_no_mark_of_another_task() -> None:
    request = example_request()
    with pytest.raises(RequestError, match="only a dry run goes by the mark of another task"):
        replace(request, origin=replace(request.origin, dry_run_of="load"))


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_list_without_incremental_sources_is_an_error(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, caplog: Any
) -> None:
    preview = _list("preview", 'dry_run=True, dry_run_of="load"', PLAIN)
    run = dag_file(f"{IMPORTS}{preview} >> {_list('load', source=PLAIN)}").run()
    assert run.state == "failed"
    assert submitter.jobs == []
