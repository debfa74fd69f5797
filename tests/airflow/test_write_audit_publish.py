"""``WriteAuditPublish``: its tasks, what each asks of the job, and what is wrong in a DAG file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_merge.operators.statement_list import delete_from
from airflow_provider_merge.operators.write_audit_publish import WriteAuditPublish
from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
    MaintenanceReport,
)
from spark_jobs.contract.query import QueryColumn, QueryReport, QuerySpec
from spark_jobs.contract.request import JobRequest, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import RequestError
from tests.airflow.support import DagFile, FakeSubmitter, committed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]

IMPORT = "from airflow_provider_merge.operators.write_audit_publish import WriteAuditPublish\n"
GROUP = (
    IMPORT
    + """
WriteAuditPublish(
    "wap",
    statements=[
        sql_statement("new", "INSERT INTO shop.orders SELECT * FROM shop.`Parcels`"),
        delete_from("gone", target="shop.orders", where="state = 'gone'"),
        {more}
    ],
    checks={checks},
    {arguments}
)
"""
)
CHECKS = '{"ids": "SELECT * FROM shop.orders JOIN shop.other USING (id)"}'


def group(more: str = "", checks: str = CHECKS, arguments: str = "") -> str:
    text = GROUP.replace("{more}", more).replace("{checks}", checks)
    return text.replace("{arguments}", arguments)


def done(request: JobRequest) -> JobResult:
    """What a job tells of a branch, of a query without rows, or of a statement."""
    if isinstance(request.statement, QuerySpec):
        return replace(
            _plain(request), query=QueryReport((QueryColumn("id", "int"),), row_count=0, rows=())
        )
    if isinstance(request.statement, FastForwardSpec):
        report = MaintenanceReport(snapshot_id=4, latest_snapshot_id=4)
        return replace(_plain(request), maintenance=report)
    if isinstance(request.statement, CreateBranchSpec | DeleteBranchSpec):
        return replace(_plain(request), maintenance=MaintenanceReport())
    return committed(request)


def _plain(request: JobRequest) -> JobResult:
    target = "" if request.target is None else str(request.target)
    return committed(request, new_snapshot_id=None, target=target)


def asked(submitter: FakeSubmitter) -> list[JobRequest]:
    works: list[Any] = [job.work for job in submitter.jobs]
    return [each for work in works for each in getattr(work, "requests", (work,))]


def test_a_run_writes_checks_and_publishes_its_own_branch(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [done]
    run = dag_file(group()).run()

    assert run.state == "success"
    old, create, new, gone, check, publish, end = asked(submitter)
    branch = create.statement.branch
    assert branch.startswith("wap_manual_")
    assert branch.replace("_", "").isalnum()
    assert old.statement == DeleteBranchSpec(branch, if_exists=True) == end.statement
    assert publish.statement == FastForwardSpec(branch)
    assert {str(each.target) for each in (old, create, publish, end)} == {"shop.orders"}
    assert {str(each.target) for each in (new, gone)} == {f"shop.orders$branch_{branch}"}
    read = [str(each.table) for each in new.sources if isinstance(each, TableSource)]
    assert read == ["shop.Parcels"]
    read = [str(each.table) for each in check.sources if isinstance(each, TableSource)]
    assert sorted(read) == [f"shop.orders$branch_{branch}", "shop.other"]


def test_only_the_publication_tells_consumers(dag_file: Callable[..., DagFile]) -> None:
    dag = dag_file(group()).dag()

    assert {name for name, task in dag.task_dict.items() if task.outlets} == {"wap.publish"}
    assert sorted(dag.task_dict) == [
        *("wap.check_ids", "wap.create_branch", "wap.delete_branch", "wap.delete_old_branch"),
        *("wap.publish", "wap.write"),
    ]


def test_of_two_tables_none_is_published_if_one_cannot_be(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    other = 'update("o", target="shop.parcels", set={"state": "1"}),'
    submitter.outcomes = [done]
    file = dag_file(group(other))
    run = file.run()

    assert run.state == "success"
    previews = [each.dry_run for each in asked(submitter) if each.statement.kind == "fast_forward"]
    assert previews == [True, True, False, False]
    (first, *_) = [each for each in asked(submitter) if each.statement.kind == "insert_into"]
    sources = [str(each.table) for each in first.sources if isinstance(each, TableSource)]
    assert [each.partition("$")[0] for each in sources] == ["shop.Parcels"]
    assert "$branch_" in sources[0], "a table is found in any case"


def test_deleting_is_a_teardown(dag_file: Callable[..., DagFile]) -> None:
    dag = dag_file(group(arguments="on_failure='delete'")).dag()

    assert dag.get_task("wap.delete_branch").is_teardown
    assert dag.get_task("wap.create_branch").is_setup


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (group(arguments="on_failure='drop'"), "on_failure: 'drop' is not one of: keep, delete"),
        (group(arguments="branch='main'"), "branch: main is the branch that every table has"),
        (group(arguments="branch=7"), "branch: is not a name"),
        (group(checks="[]"), "checks: there is none"),
        (group(checks="7"), "checks: expected a list or a dict of queries, found int"),
        (group(checks="{'a': 7}"), "checks[a]: is neither a query nor a dict with sql"),
        (group(checks="[{'sql': 'SELECT 1', 'no': 1}]"), "checks[1].no: unknown field"),
        (group(checks="['DELETE FROM a.b']"), "SYNTAX_ERROR"),
        (group(checks="[{'sql': 'SELECT 1', 'check': 'x'}]"), "check: 'x' is not one of"),
        (group('{"name": "c", "operation": "compact", "target": "a.b"}'), "'compact' cannot be"),
        (group('delete_from("d", target="{{ ds }}", where="1 = 1")'), "targets: the table of"),
        (group('"sql/cleanup.sql"'), "targets: the table of statements[2]"),
        (
            group('sql_statement("x", "DELETE FORM a.b")'),
            "task 'wap': statement 'x': sql: line 1, column 8: expected FROM",
        ),
        (
            group('sql_statement("x", "CREATE TABLE a.b AS SELECT 1 AS c")'),
            "task 'wap': statement 'x': CREATE TABLE cannot be done on a branch",
        ),
        (
            group('delete_from("x", target="a.b", where="a = 1", max_deleted_rows=-1)'),
            "task 'wap': statement 'x': max_deleted_rows: -1",
        ),
        (group(arguments="max_deleted_rows=1"), "task 'wap': max_deleted_rows: belongs to a state"),
        (group(arguments="conf=None"), "task 'wap': conf: is None"),
        (group(checks="{'a': 'SELCT 1'}"), "task 'wap': checks[a]: sql: line 1, column 1: SELCT"),
        (group(arguments="targets=[]"), "targets: expected a list of tables"),
        (group(arguments="targets=['orders']"), "targets: 'orders' is not a table name"),
        (group(arguments="targets=['a.`b$branch_c`']"), "targets: a.b$branch_c is a branch"),
        (group(arguments="limit=5"), "limit"),
    ],
)
def test_bad_input_is_named(dag_file: Callable[..., DagFile], text: str, message: str) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - JobError, or Airflow's own
        dag_file(text).dag()

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("more", "arguments"),
    [
        ("", "targets=['shop.parcels']"),
        (
            'sql_statement("c", "CREATE TABLE shop.c {% if true %}AS{% endif %} SELECT 1 AS a")',
            "targets=['shop.orders', 'shop.c']",
        ),
    ],
)
def test_what_only_the_run_can_tell_fails_before_anything_runs(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, more: str, arguments: str
) -> None:
    submitter.outcomes = [done]

    run = dag_file(group(more, arguments=arguments)).run()

    assert run.state == "failed"
    kinds = {each.statement.kind for each in asked(submitter)}
    assert kinds == {"create_branch", "delete_branch"}


def test_the_example() -> None:
    from dags_examples import audited_orders

    tasks = audited_orders.dag.task_dict
    assert sorted(name for name in tasks if ".check_" in name) == [
        *("orders.check_amounts", "orders.check_ids"),
    ]
    assert tasks["orders.publish"].outlets[0].uri == "lakehouse://paimon_default/shop/orders"


def test_nothing_is_published_behind_a_check_that_failed() -> None:
    rules = {"trigger_rule": "all_done", "dry_run": True}
    with DAG("d", schedule=None, default_args=rules) as dag:
        WriteAuditPublish(
            group_id="g",
            statements=[delete_from("gone", target="shop.orders", where="id = 1")],
            checks=["SELECT * FROM shop.orders WHERE id IS NULL"],
        )

    publish, write = dag.get_task("g.publish"), dag.get_task("g.write")
    assert publish.trigger_rule == "all_success"
    assert (publish.dry_run, write.dry_run) == (False, False)
    with DAG("e", schedule=None), pytest.raises(RequestError, match="trigger_rule"):
        WriteAuditPublish(
            group_id="g",
            statements=[delete_from("gone", target="shop.orders", where="id = 1")],
            checks=["SELECT * FROM shop.orders WHERE id IS NULL"],
            trigger_rule="all_done",
        )
