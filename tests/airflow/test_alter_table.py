"""AlterTableOperator: text and parts, wrong input, secrets, dry runs, lists of statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_merge.operators import table_changes
from airflow_provider_merge.operators._shared.results import result_table, xcom_value
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.table_changes import (
    add_column,
    add_partition_field,
    comment_column,
    comment_table,
    drop_column,
    drop_identifier_fields,
    drop_not_null,
    drop_partition_field,
    move_column,
    rename_column,
    replace_partition_field,
    set_default,
    set_identifier_fields,
    set_properties,
    unset_properties,
    widen_column,
    write_ordered_by,
)
from spark_jobs.contract.alter_table import (
    AddColumn,
    AlteredPart,
    AlterTableReport,
    AlterTableSpec,
    DropColumn,
)
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import Metrics
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import JobError
from tests.airflow.support import DagFile, FakeSubmitter, committed, example_request

REPORT = AlterTableReport(
    (
        AlteredPart("column", "n INT", "n BIGINT"),
        AlteredPart("sort order", "", "n DESC NULLS LAST"),
        AlteredPart("comment", "all", None),
    )
)
# Each function, and the same as text.
SAME = {
    "ADD COLUMN IF NOT EXISTS a.b INT NOT NULL DEFAULT 5 COMMENT 'x' AFTER c": add_column(
        "a.b", "INT", nullable=False, comment="x", default="5", after="c", if_not_exists=True
    ),
    "DROP COLUMN IF EXISTS a": drop_column("a", if_exists=True),
    "RENAME COLUMN a TO b": rename_column("a", "b"),
    "ALTER COLUMN a TYPE BIGINT": widen_column("a", "BIGINT"),
    "ALTER COLUMN a COMMENT 'x'": comment_column("a", "x"),
    "ALTER COLUMN a DROP NOT NULL": drop_not_null("a"),
    "ALTER COLUMN a FIRST": move_column("a", first=True),
    "ALTER COLUMN a SET DEFAULT 5": set_default("a", "5"),
    "SET TBLPROPERTIES ('a' = 'b')": set_properties({"a": "b"}),
    "UNSET TBLPROPERTIES ('a', 'b')": unset_properties("a", "b"),
    "ADD PARTITION FIELD day(ts) AS d": add_partition_field("day(ts)", name="d"),
    "DROP PARTITION FIELD d": drop_partition_field("d"),
    "REPLACE PARTITION FIELD d WITH hour(ts)": replace_partition_field("d", "hour(ts)"),
    "WRITE ORDERED BY a DESC": write_ordered_by("a DESC", distribution="range"),
    "SET IDENTIFIER FIELDS a": set_identifier_fields("a"),
    "DROP IDENTIFIER FIELDS a": drop_identifier_fields("a"),
}


def operator(**parameters: Any) -> AlterTableOperator:
    return AlterTableOperator(task_id="alter", **parameters)


@pytest.mark.parametrize("text", SAME)
def test_text_and_parts_are_one_statement(text: str) -> None:
    parts = operator(target="shop.orders", changes=[SAME[text]])
    written = operator(sql=f"ALTER TABLE orders {text}", database="shop")

    assert parts.statement() == written.statement()
    assert parts.target_table() == written.target_table()
    assert not parts.needs_session()


def test_every_function_has_its_text() -> None:
    made = {each["kind"] for each in SAME.values()} | {comment_table("x")["kind"]}
    named = [getattr(table_changes, name) for name in vars(table_changes)]
    functions = [f for f in named if getattr(f, "__module__", "") == table_changes.__name__]
    assert len(made) == len([f for f in functions if callable(f)])


WRONG = {
    "nothing": ({"target": "a.b"}, "changes: missing"),
    "no list": ({"target": "a.b", "changes": {"kind": "x"}}, "changes: expected a list of"),
    "no kind": (
        {"target": "a.b", "changes": [{"kind": "truncate"}]},
        "changes[0].kind: 'truncate' is not one of",
    ),
    "a field": (
        {"target": "a.b", "changes": [{**drop_column("a"), "cascade": True}]},
        "changes[0].cascade: unknown field",
    ),
    "a type": (
        {"target": "a.b", "changes": [add_column("a", "NUMBER")]},
        "changes[0]: type: of column a: 'NUMBER' is not a type",
    ),
    "both": (
        {"sql": "ALTER TABLE a.b DROP COLUMN c", "target": "a.b"},
        "target: cannot be combined with sql",
    ),
    "text": ({"sql": "ALTER TABLE a.b FOO"}, "sql: line 1, column 17: expected ADD COLUMN"),
    "other statement": ({"sql": "DELETE FROM a.b"}, "sql: line 1, column 1: expected ALTER TABLE"),
    "secret": (
        {"target": "a.b", "changes": [set_properties({"s3.secret-access-key": "hunter2"})]},
        "changes.s3.secret-access-key: holds a secret",
    ),
    "secret as text": (
        {"sql": "ALTER TABLE a.b SET TBLPROPERTIES ('s3.secret-access-key' = 'hunter2')"},
        "sql.s3.secret-access-key: holds a secret",
    ),
}


@pytest.mark.parametrize(("parameters", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_named_when_the_dag_is_parsed(
    parameters: dict[str, Any], problem: str
) -> None:
    with pytest.raises(JobError) as caught:
        operator(**parameters)
    assert caught.value.message.startswith(f"task 'alter': {problem}")
    assert "hunter2" not in str(caught.value)


def test_a_template_is_checked_when_it_is_rendered() -> None:
    made = operator(sql="ALTER TABLE {{ params.table }} DROP COLUMN c")
    made.sql = "ALTER TABLE a.b DROP c"
    with pytest.raises(JobError, match="SYNTAX_ERROR: sql: line 1"):
        made.check_request()
    assert made.outlets == []


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_the_report_is_the_xcom_and_no_event_is_sent(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [
        lambda request: committed(
            request, status="dry_run", metrics=Metrics(), new_snapshot_id=None, alteration=REPORT
        )
    ]
    body = (
        "from airflow_provider_merge.operators.alter_table import AlterTableOperator\n"
        "from airflow_provider_merge.operators.table_changes import add_column, drop_column\n"
        'AlterTableOperator(task_id="t", target="shop.orders", dry_run="{{ params.dry }}", changes='
        '[add_column("{{ params.name }}", "INT"), drop_column("b")])'
    )
    run = dag_file(body, arguments='params={"name": "a", "dry": True}').run()

    assert run.state == "success"
    request: JobRequest = submitter.request
    assert request.statement == AlterTableSpec((AddColumn("a", "INT"), DropColumn("b")))
    assert request.dry_run
    (ti,) = run.get_task_instances()
    result = ti.xcom_pull(task_ids="t")
    assert result["status"] == "dry_run"
    assert result["parts"][0] == {"what": "column", "before": "n INT", "after": "n BIGINT"}


def test_the_log_shows_old_and_new() -> None:
    made = committed(example_request(), new_snapshot_id=None, alteration=REPORT)
    assert result_table(made).splitlines() == [
        "shop.orders: committed",
        "  changed column: n INT -> n BIGINT",
        "  changed sort order: none -> n DESC NULLS LAST",
        "  changed comment: all -> none",
        "  seconds: join 0.5",
    ]
    assert xcom_value(made)["omitted"] == 0


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_list_of_statements_alters_a_table(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    body = """
        from airflow_provider_merge.operators.statement_list import alter_table
        StatementsOperator(task_id="t", statements=[
            create_table("make", target="shop.f", columns=[column("id", "INT")]),
            alter_table("more", sql="ALTER TABLE shop.f ADD COLUMN n INT"),
            sql_statement("fill", "UPDATE shop.f SET n = 1"),
        ])
    """
    assert dag_file(body).run().state == "success"
    (job,) = submitter.jobs
    kinds = [request.statement.kind for request in job.work.requests]
    assert kinds == ["create_table", "alter_table", "update"]
    assert [sorted(each) for each in job.work.needs()] == [[], [0], [0, 1]]


def test_create_table_like_and_with_defaults() -> None:
    like = CreateTableOperator(task_id="t", target="shop.new", like="shop.orders")
    assert like.statement() == CreateTableSpec(like="`shop`.`orders`")
    text = CreateTableOperator(task_id="t", sql="CREATE TABLE shop.new LIKE shop.orders")
    assert text.statement() == like.statement()
    columns = [column("id", "INT", default="5"), column("s", "STRING")]
    made = CreateTableOperator(task_id="t", target="shop.new", columns=columns)
    assert [each.default for each in made.statement().columns] == ["5", None]
    for parameters, problem in (
        ({"columns": columns, "like": "shop.o"}, "columns: cannot be combined with like"),
        ({"like": "lake.shop.o"}, "like: 'lake.shop.o' names a catalog"),
        ({"like": "o"}, "like: 'o' is not a table name"),
        ({}, "columns: missing"),
    ):
        with pytest.raises(JobError) as caught:
            CreateTableOperator(task_id="t", target="shop.new", **parameters)
        assert problem in caught.value.message
