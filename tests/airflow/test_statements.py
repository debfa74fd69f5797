"""Several statements in one task: what is asked of the job, and what comes back of each."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.dagrun import DagRun

from airflow_provider_merge.submit.submitter import SparkJob
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.contract.statements import CreateTableSpec, DeleteSpec, MergeSpec, UpdateSpec
from spark_jobs.errors import JobError
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]

THREE = """
StatementsOperator(
    task_id="many",
    statements=[
        delete_from("old", target="shop.orders", where="day < '{{ params.day }}'"),
        update("done", target="shop.parcels", set={"state": "'done'"}),
        delete_from("gone", target="shop.orders", where="state = 'gone'"),
    ],
    {arguments}
)
"""
PARAMS = 'params={"day": "2026-01-31", "dry_run": True}'
WRONG_ROW = ErrorInfo("NOT_NULL_VIOLATION", "column a is NULL", "Look.", retryable=False)
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "somebody was there", "", retryable=True)


def three(arguments: str = "") -> str:
    return THREE.replace("{arguments}", arguments)


def xcom(run: DagRun) -> Any:
    (ti,) = run.get_task_instances()
    return ti.xcom_pull(task_ids=ti.task_id)


def events(run: DagRun) -> dict[str, Any]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).filter(AssetEvent.source_dag_id == run.dag_id).all()
        return {each.asset.uri: each.extra for each in found}


def with_error(error: ErrorInfo) -> Callable[[Any], JobResult]:
    return lambda request: failed(request, error)


def test_the_job_gets_all_of_them_rendered(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    run = dag_file(three("max_parallel='2', on_failure='continue'"), arguments=PARAMS).run()

    assert run.state == "success"
    (job,) = submitter.jobs
    assert (job.work.max_parallel, job.work.on_failure) == (2, "continue")
    old, done, gone = job.work.requests
    assert old.statement == DeleteSpec("orders", "day < '2026-01-31'")
    assert isinstance(done.statement, UpdateSpec)
    assert [str(each.target) for each in (old, done, gone)] == [
        *("shop.orders", "shop.parcels", "shop.orders")
    ]
    assert [each.origin.statement for each in (old, done, gone)] == ["old", "done", "gone"]
    assert {each.origin.task_id for each in (old, done, gone)} == {"many"}
    assert len({job.work.operation_id, *(each.operation_id for each in job.work.requests)}) == 4


def test_a_task_of_the_dag_is_the_list_only(dag_file: Callable[..., DagFile]) -> None:
    dag = dag_file(three(), arguments=PARAMS).dag()
    assert list(dag.task_dict) == ["many"]


def test_each_has_its_result(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    submitter.outcomes = [
        lambda request: committed(request, new_snapshot_id=8),
        lambda request: committed(request, new_snapshot_id=3),
        lambda request: committed(request, new_snapshot_id=9),
    ]
    results = xcom(dag_file(three(), arguments=PARAMS).run())["statements"]

    assert {name: each["snapshot_id"] for name, each in results.items()} == {
        "old": 8,
        "done": 3,
        "gone": 9,
    }
    assert results["old"]["metrics"]["inserted"] == 1


def test_each_table_has_its_event(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    snapshots = iter((8, 3, 9))
    submitter.outcomes = [lambda request: committed(request, new_snapshot_id=next(snapshots))]
    found = events(dag_file(three(), arguments=PARAMS).run())

    assert set(found) == {
        "lakehouse://paimon_default/shop/orders",
        "lakehouse://paimon_default/shop/parcels",
    }
    orders = found["lakehouse://paimon_default/shop/orders"]
    assert orders["snapshot_id"] == 9
    assert [each["snapshot_id"] for each in orders["statements"]] == [8, 9]
    parcels = found["lakehouse://paimon_default/shop/parcels"]
    assert (parcels["snapshot_id"], parcels["operation"]) == (3, "update")
    assert "statements" not in parcels


def test_what_failed_and_what_was_not_run_is_named(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [committed, with_error(WRONG_ROW), lambda _: None]
    submitter.process_fails = True

    run = dag_file(three("retries=3"), arguments=PARAMS).run()

    said = capsys.readouterr().out
    assert run.state == "failed"
    assert "1 of 3 statements failed:" in said
    assert "done: NOT_NULL_VIOLATION: column a is NULL" in said
    assert "Not run, because one before failed: gone" in said
    assert "Done, and not repeated by a retry: old" in said
    assert len(submitter.jobs) == 1, "no retry mends it"
    assert events(run) == {}


def test_a_retry_runs_the_same_operations(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [
        *(committed, with_error(CONFLICT), lambda _: None),
        # Of the second try: the first statement is found committed, and left alone.
        *(lambda _: None, committed, committed),
    ]
    process_ends = iter((True, False))
    submit = submitter.submit

    def play(job: SparkJob) -> None:
        submitter.process_fails = next(process_ends)
        submit(job)

    submitter.submit = play  # type: ignore[method-assign]
    arguments = "retries=1, retry_delay=__import__('datetime').timedelta(0)"
    run = dag_file(three(arguments), arguments=PARAMS).run()

    assert run.state == "success"
    first, second = submitter.jobs
    assert [each.operation_id for each in first.work.requests] == [
        each.operation_id for each in second.work.requests
    ]
    assert {each.origin.try_number for each in second.work.requests} == {2}
    assert list(xcom(run)["statements"]) == ["old", "done", "gone"]


def test_a_driver_that_died_without_a_word_is_told(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [lambda _: None]
    submitter.process_fails = True
    run = dag_file(three(), arguments=PARAMS).run()

    assert run.state == "failed"
    said = capsys.readouterr().out
    assert "SPARK_FAILED: Cannot execute: spark-submit." in said
    assert "No result: old, done, gone. Done, and not repeated by a retry: none." in said


def test_a_dry_run_is_one_of_each(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, warehouse: Path
) -> None:
    submitter.outcomes = [
        lambda request: committed(request, status="dry_run", new_snapshot_id=None)
    ]
    run = dag_file(three("dry_run='{{ params.dry_run }}'"), arguments=PARAMS).run()

    assert [each.dry_run for each in submitter.jobs[0].work.requests] == [True] * 3
    assert {each["status"] for each in xcom(run)["statements"].values()} == {"dry_run"}
    assert events(run) == {}
    assert list(warehouse.iterdir()) == []


def test_texts_and_files_are_statements(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, tmp_path: Path
) -> None:
    (tmp_path / "cleanup.sql").write_text("DELETE FROM shop.a WHERE day < '{{ params.day }}'")
    (tmp_path / "days.sql").write_text("INSERT OVERWRITE shop.c SELECT * FROM shop.b")
    body = """
        StatementsOperator(
            task_id="many",
            statements=[
                "cleanup.sql",
                insert_overwrite("days", sql="days.sql", mode="dynamic"),
                sql_statement("one", "UPDATE shop.d SET n = n + 1"),
                sql_statement("merge", "MERGE INTO e USING new ON e.id = new.id "
                              "WHEN MATCHED THEN DELETE", database="shop",
                              sources={"new": table_source("shop.a")}),
                create_table("make", target="shop.f", columns=[{"name": "id", "type": "INT"}]),
            ],
        )
    """
    arguments = f"{PARAMS}, template_searchpath={str(tmp_path)!r}"
    run = dag_file(body, arguments=arguments).run()

    assert run.state == "success"
    requests = submitter.jobs[0].work.requests
    assert [type(each.statement) for each in requests] == [
        *(DeleteSpec, InsertOverwriteSpec, UpdateSpec, MergeSpec, CreateTableSpec)
    ]
    assert requests[0].origin.statement == "cleanup"
    assert requests[0].statement.where == "day < '2026-01-31'"


def test_lists_of_other_tasks_are_mapped(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    body = """
        @task
        def lists():
            return [[delete_from("d", target=f"shop.{name}", where="id = 1")] for name in "ab"]
        StatementsOperator.partial(task_id="many").expand(statements=lists())
    """
    run = dag_file(textwrap.dedent(body)).run()

    assert run.state == "success"
    targets = {str(request.target) for job in submitter.jobs for request in job.work.requests}
    assert targets == {"shop.a", "shop.b"}
    assert len({job.work.operation_id for job in submitter.jobs}) == 2


WRONG = {
    "empty": ("statements=[]", "statements: is empty"),
    "no list": ("statements='x'", "statements: expected a list of statements, found str"),
    "two of one name": (
        'statements=[delete_from("a", target="s.t"), update("a", target="s.u", set={"n": "1"})]',
        "statements: two statements are called 'a'",
    ),
    "a name with blanks": (
        'statements=[delete_from("a b", target="s.t")]',
        "statements[0].name: 'a b' is not a name of letters",
    ),
    "an operation that is none": (
        'statements=[{"name": "a", "operation": "expire"}]',
        "statements[0].operation: 'expire' is not one of: merge_into, update",
    ),
    "a text without a name": (
        'statements=["DELETE FROM a.b"]',
        "statements[0]: is text without a name",
    ),
    "a policy that is none": (
        'statements=[delete_from("a", target="s.t")], on_failure="skip"',
        "on_failure: 'skip' is not one of: stop, continue",
    ),
    "no statement at once": (
        'statements=[delete_from("a", target="s.t")], max_parallel=0',
        "max_parallel: 0 is not a positive whole number",
    ),
    "a parameter that is none": (
        'statements=[delete_from("a", target="s.t", wher="id = 1")]',
        "statement 'a': wher: is not a parameter of DeleteFromOperator",
    ),
    "a parameter of the task": (
        'statements=[delete_from("a", target="s.t", driver_memory="1g")]',
        "statement 'a': driver_memory: belongs to the task",
    ),
    "a parameter that is missing": (
        'statements=[{"name": "a", "operation": "insert_overwrite", "target": "s.t"}]',
        "statement 'a': InsertOverwriteOperator: ",
    ),
    "a wrong target": (
        'statements=[delete_from("a", target="t")]',
        "statement 'a': target: ",
    ),
    "a wrong text": (
        'statements=[sql_statement("a", "DELETE FORM s.t")]',
        "statement 'a': sql: line 1",
    ),
    "a dry run of CREATE TABLE": (
        'dry_run=True, statements=[create_table("a", target="s.t", columns=[])]',
        "statement 'a': dry_run: CREATE TABLE has no dry run",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_when_the_dag_is_parsed(
    dag_file: Callable[..., DagFile], arguments: str, message: str
) -> None:
    with pytest.raises(JobError) as raised:
        dag_file(f'StatementsOperator(task_id="many", {arguments})').dag()
    assert message in str(raised.value)


def test_a_wrong_statement_of_a_template_starts_no_job(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    body = three().replace("shop.parcels", "{{ params.day }}")
    run = dag_file(body, arguments=PARAMS).run()

    assert run.state == "failed"
    assert submitter.jobs == []
    assert "statement 'done': target: " in capsys.readouterr().out


def test_it_stands_between_setup_and_teardown(dag_file: Callable[..., DagFile]) -> None:
    body = """
        from airflow.sdk import setup, teardown
        @setup
        def begin(): ...
        @teardown
        def finish(): ...
        with begin() >> finish():
            StatementsOperator(task_id="many", statements=[delete_from("a", target="s.t")])
    """
    dag = dag_file(textwrap.dedent(body)).dag()
    assert sorted(dag.task_dict) == ["begin", "finish", "many"]
    assert dag.get_task("many").upstream_task_ids == {"begin"}
