"""``approved``, ``dry_run="plan"`` and guards: from the DAG file to the request, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Environment

from airflow_provider_merge.operators._shared.results import result_table
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import (
    cdc_source,
    deduplicate,
    jdbc_source,
    python_source,
    spark_source,
    sql_source,
    table_source,
)
from airflow_provider_merge.operators.statement_list import delete_from, insert_into
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from spark_jobs.contract import codec
from spark_jobs.contract.approval import Ticket
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import GuardReport, JobResult, Metrics, PlanReport
from spark_jobs.errors import CommitError, NotSupportedError, RequestError
from tests.airflow.parameter_values import TICKET
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request

_TASK = 'DeleteFromOperator(task_id="{}", target="shop.orders", where="id = 1", {})'


def _previewed(request: JobRequest) -> JobResult:
    """What the job makes of a dry run, and of the real one."""
    if not request.dry_run:
        return committed(request)
    ticket = Ticket(request.operation_id, str(request.table), request.part_digests(), "0", 1)
    return replace(
        committed(request, status="dry_run", new_snapshot_id=None, metrics=Metrics()),
        ticket=ticket,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
@pytest.mark.parametrize(
    "approved",
    [
        "\"{{ ti.xcom_pull('preview') }}\"",
        "\"{{ ti.xcom_pull('preview')['ticket'] }}\"",
        "\"{{ ti.xcom_pull('preview') | tojson }}\"",
        "preview.output",
    ],
)
def test_the_ticket_of_a_preview_reaches_the_job(
    approved: str, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [_previewed]
    preview = _TASK.format("preview", "dry_run=True")
    real = _TASK.format("real", f"approved={approved}")

    assert dag_file(f"preview = {preview}\npreview >> {real}").run().state == "success"

    first, second = (job.work for job in submitter.jobs)
    assert isinstance(first, JobRequest)
    assert isinstance(second, JobRequest)
    assert second.approved is not None
    assert second.approved.operation_id == first.operation_id
    assert not second.dry_run


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
@pytest.mark.parametrize(
    "approved",
    [
        "{{ ti.xcom_pull('preview')['statements']['gone'] }}",
        "{{ ti.xcom_pull('preview')['statements']['gone'] | tojson }}",
        "{{ ti.xcom_pull('preview')['statements']['gone']['ticket'] }}",
    ],
)
@pytest.mark.parametrize("where", ["statement", "default_args"])
def test_a_statement_of_a_list_takes_a_ticket_as_a_task_does(
    approved: str, where: str, dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [_previewed]
    listed = 'delete_from("gone", target="shop.orders", where="id = 1"{})'
    preview = f'StatementsOperator(task_id="preview", dry_run=True, statements=[{listed}])'
    own = f', approved="{approved}"' if where == "statement" else ""
    more = f', default_args={{"approved": "{approved}"}}' if where == "default_args" else ""
    real = f'StatementsOperator(task_id="real", statements=[{listed.format(own)}]{more})'

    body = f"preview = {preview.format('')}\npreview >> {real}"
    assert dag_file(body).run().state == "success"

    first, second = (job.work for job in submitter.jobs)
    assert isinstance(first, JobBatch)
    assert isinstance(second, JobBatch)
    ticket = second.requests[0].approved
    assert ticket is not None
    assert ticket.operation_id == first.requests[0].operation_id


@pytest.mark.parametrize(("deleted", "warned"), [(3, False), (300, True)])
def test_the_question_of_the_example_shows_guards_that_would_trip(
    deleted: int, warned: bool
) -> None:
    from dags_examples import approved_merge

    report = GuardReport("max_deleted_rows", "100", str(deleted), held=not warned)
    metrics = Metrics(deleted=deleted, guards=(report,))
    found = {"metrics": codec.encode(metrics), "target": "shop.orders"}
    ti = SimpleNamespace(xcom_pull=lambda task_ids, key="": "/page" if key else found)

    text = Environment(autoescape=False).from_string(approved_merge.QUESTION).render(ti=ti)

    assert f"{deleted} deleted in shop.orders" in text
    warning = "**It would fail**: max_deleted_rows, 300 where 100 is allowed."
    assert (warning in text) == warned


def test_an_approval_that_is_nothing_is_never_left_out() -> None:
    parameters: dict[str, Any] = {"target": "a.b", "where": "id = 1", "approved": None}
    with pytest.raises(RequestError, match="approved: is None") as caught:
        DeleteFromOperator(task_id="t", **parameters)
    assert "would run without approval" in str(caught.value)
    assert "leave it out" not in str(caught.value)
    with pytest.raises(RequestError, match=r"statement 'x': approved: is None") as caught:
        StatementsOperator(task_id="t", statements=[delete_from("x", **parameters)])
    assert "would run without approval" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "remedy"), [("paln", "Write True, False or 'plan'."), ("1", "or 'plan'")]
)
def test_what_a_dry_run_may_be_is_told(value: str, remedy: str) -> None:
    with pytest.raises(RequestError, match=r"dry_run: .* is neither true nor false") as caught:
        DeleteFromOperator(task_id="t", target="a.b", where="id = 1", dry_run=value)
    assert remedy in str(caught.value)


def test_lists_have_no_plan_and_say_what_to_do() -> None:
    listed = delete_from("x", target="a.b", where="id = 1")
    with pytest.raises(RequestError, match="dry_run: 'plan' is for the operator of one") as caught:
        StatementsOperator(task_id="t", statements=[listed], dry_run="plan")
    assert "in its own task" in str(caught.value)


def test_another_statement_is_found_before_spark_starts() -> None:
    dry = example_request(dry_run=True)
    ticket = _previewed(dry).ticket
    other = replace(example_request(target=dry.target, approved=ticket), options=JobOptions("CET"))
    operator = DeleteFromOperator(task_id="t", target="a.b", where="id = 1")
    check: Any = SimpleNamespace(hook=None)

    with pytest.raises(CommitError, match="other than in the dry run: options") as caught:
        operator.require_valid(other, check)
    assert caught.value.code.name == "APPROVAL_STALE"


@pytest.mark.parametrize(
    ("approved", "problem"),
    [
        ({"status": "committed"}, "approved: is not the result of a dry run"),
        ({"ticket": None}, "approved: is not the result of a dry run"),
        ("yes", "approved: is not the result of a dry run"),
        ({"ticket": {**TICKET, "version": 2}}, "the ticket has the version 2"),
        ({"ticket": {**TICKET, "deleted": "1"}}, "approved.deleted"),
    ],
    ids=["result", "plan", "text", "version", "field"],
)
def test_what_is_no_ticket_is_named(approved: Any, problem: str) -> None:
    with pytest.raises(RequestError, match="approved") as caught:
        DeleteFromOperator(task_id="t", target="a.b", where="id = 1", approved=approved)
    assert problem in str(caught.value)


_EVENTS: dict[str, Any] = {"keys": ["id"], "sequence": ["lsn"], "values": {"delete": "d"}}
OUTSIDE = {
    "jdbc": jdbc_source("shop_db", query="SELECT * FROM orders"),
    "spark": spark_source("kafka", options={"subscribe": "{{ params.topic }}"}),
    "python": python_source("json:loads"),
}
ABOVE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "itself": lambda source: source,
    "deduplicated": lambda source: deduplicate(source, by=["id"], order_by=["at"]),
    "query": lambda source: sql_source("SELECT * FROM below", sources={"below": source}),
}


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("kind", OUTSIDE)
def test_rows_from_outside_cannot_be_approved(kind: str, above: str) -> None:
    """Nobody would learn it before the dry run was made, and the question answered."""
    source = ABOVE[above](OUTSIDE[kind])
    later: dict[str, Any] = {"approved": "{{ ti.xcom_pull('preview') }}", "target": "a.b"}
    when = [when_matched().delete()]

    def listed() -> object:
        statement = insert_into("x", source=source, **later)
        return StatementsOperator(task_id="t", statements=[statement])

    made: list[Callable[[], object]] = [
        lambda: MergeIntoOperator(task_id="t", source=source, on="t.id = s.id", when=when, **later),
        lambda: Scd2Operator(task_id="t", source=source, keys=["id"], as_of="2026-01-31", **later),
        lambda: InsertOverwriteOperator(task_id="t", source=source, mode="dynamic", **later),
        lambda: MergeIntoOperator(
            task_id="t",
            sql="MERGE INTO a.b USING s ON b.id = s.id WHEN MATCHED THEN DELETE",
            sources={"s": source},
            approved=later["approved"],
        ),
        listed,
    ]
    for make in made:
        with pytest.raises(NotSupportedError, match=rf"approved: source .* of the kind {kind}"):
            make()


@pytest.mark.parametrize("kind", OUTSIDE)
def test_events_from_outside_cannot_be_approved(kind: str) -> None:
    events = cdc_source(OUTSIDE[kind], **_EVENTS)
    given: dict[str, Any] = {"target": "a.b", "source": events}
    given["approved"] = "{{ ti.xcom_pull('preview') }}"
    with pytest.raises(NotSupportedError, match=r"approved: source .* of the kind"):
        MergeIntoOperator(task_id="t", **given)
    with pytest.raises(NotSupportedError, match=r"approved: source .* of the kind"):
        Scd2Operator(task_id="t", keys=["id"], as_of="2026-01-31", **given)
    del given["approved"]
    MergeIntoOperator(task_id="t", dry_run=True, **given)


def test_a_dry_run_cannot_be_approved() -> None:
    with pytest.raises(RequestError, match="approved: a dry run does nothing that could be"):
        DeleteFromOperator(
            task_id="t", target="a.b", where="id = 1", approved={"ticket": TICKET}, dry_run=True
        )


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_plan_is_told(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    plan = PlanReport(files_rewritten=3, bytes_rewritten=5_000, deleted=70)
    submitter.outcomes = [
        lambda request: replace(_previewed(request), status="planned", ticket=None, plan=plan),
    ]

    run = dag_file(_TASK.format("t", 'dry_run="plan"')).run()

    assert (submitter.request.dry_run, submitter.request.plan_only) == (True, True)
    (ti,) = run.get_task_instances()
    value = ti.xcom_pull(task_ids="t")
    assert (value["status"], value["plan"]["deleted"], value["ticket"]) == ("planned", 70, None)


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_guards_reach_the_job_and_its_result_the_log(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
) -> None:
    report = GuardReport("max_deleted_rows", "5 %", "3", held=True)
    submitter.outcomes = [
        lambda request: committed(request, metrics=Metrics(guards=(report,))),
    ]
    given = "max_deleted_rows='{{ 2 + 3 }} %', max_bytes_rewritten='1 gb', max_deleted_share=0.5"

    run = dag_file(_TASK.format("t", given)).run()

    assert submitter.request.guards == Guards(
        max_deleted_rows=Limit(share=0.05), max_bytes_rewritten=2**30, max_deleted_share=0.5
    )
    line = "guard max_deleted_rows = 5 % holds: 3"
    assert line in result_table(committed(submitter.request, metrics=Metrics(guards=(report,))))
    (ti,) = run.get_task_instances()
    (told,) = ti.xcom_pull(task_ids="t")["metrics"]["guards"]
    assert (told["name"], told["seen"], told["held"]) == ("max_deleted_rows", "3", True)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("max_deleted_rows", -1, "is neither a whole number nor a share"),
        ("max_deleted_rows", "101%", "is neither a whole number nor a share"),
        ("max_deleted_rows", True, "is neither a whole number nor a share"),
        ("max_deleted_rows", 1.5, "is neither a whole number nor a share"),
        ("max_deleted_share", 2, "is not a number from 0 to 1"),
        ("max_deleted_share", "200%", "is not a number from 0 to 1"),
        ("max_bytes_rewritten", "much", "is not a size"),
        ("outside_partitions", "keep", "needs expected_partitions"),
        ("on_schema_change", "sync", "is not one of: ignore, fail, append, widen"),
        ("on_schema_change", "append_new_columns", "Write append, which is the same here"),
        ("on_schema_change", "sync_all_columns", "Write append; no column is ever dropped"),
    ],
)
def test_a_wrong_guard_is_named(name: str, value: Any, problem: str) -> None:
    sql = "MERGE INTO a.b USING c.d s ON b.id = s.id WHEN MATCHED THEN DELETE"
    with pytest.raises(RequestError) as caught:
        MergeIntoOperator(task_id="t", sql=sql, **{name: value})
    assert f"{name}: " in str(caught.value)
    assert problem in str(caught.value)


def test_a_guard_without_meaning_is_no_parameter() -> None:
    with pytest.raises(TypeError, match="max_updated_rows"):
        TruncateTableOperator(task_id="t", target="a.b", max_updated_rows=3)
    with pytest.raises(TypeError, match="outside_partitions"):
        InsertOverwriteOperator(
            task_id="t",
            target="a.b",
            source=table_source("a.c"),
            mode="dynamic",
            outside_partitions="keep",
        )


def test_on_schema_change_stands_alone() -> None:
    sql = "MERGE INTO a.b USING c.d s ON b.id = s.id WHEN MATCHED THEN UPDATE SET *"
    with pytest.raises(RequestError, match="cannot be combined with schema_evolution"):
        MergeIntoOperator(task_id="t", sql=sql, on_schema_change="append", schema_evolution=True)
    operator = MergeIntoOperator(task_id="t", sql=sql, on_schema_change="widen")
    assert (operator.statement().schema_evolution, operator.job_options().type_widening) == (
        True,
        True,
    )
    evolving = sql.replace("INTO", "WITH SCHEMA EVOLUTION INTO")
    operator = MergeIntoOperator(task_id="t", sql=evolving, on_schema_change="fail")
    assert not operator.statement().schema_evolution
    assert operator.guards() == Guards(same_columns=True)
