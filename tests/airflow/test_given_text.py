"""Text is text: never rendered or read as a file a second time, and no statement gets lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, literal

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, table_source
from airflow_provider_merge.operators.statement_list import merge_into, sql_statement, update
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.templates import all_known
from spark_jobs.errors import RequestError
from tests.airflow.contexts import DAY, Server, rendered_task

BRACES = "a {{ b"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def statements(operator: StatementsOperator) -> list[Any]:
    with all_known():
        return [each.statement() for each in operator._known_operators().values()]


SQL = "UPDATE a.b SET n = '{{ params.n }}'"


@pytest.mark.parametrize("n", [BRACES, "{% raw", "{# x", "{{ 7 * 7 }}"])
def test_as_many_statements_as_are_written(server: Server, n: str) -> None:
    listed = [sql_statement("one", SQL), update("two", target="a.b", set={"n": "'{{ params.n }}'"})]
    operator = rendered_task(
        lambda up: StatementsOperator(task_id="t", statements=listed),
        params={"n": ""},
        conf={"n": n},
    )
    assert [each.assignments[0].value for each in statements(operator)] == [f"'{n}'"] * 2


def test_the_only_statement_with_braces(server: Server) -> None:
    raw = "UPDATE a.b SET n = '{% raw %}{{ x }}{% endraw %}'"
    operator = rendered_task(
        lambda up: StatementsOperator(task_id="t", statements=[sql_statement("s", raw)])
    )

    (statement,) = statements(operator)
    assert statement.assignments[0].value == "'{{ x }}'"


ENDING = {
    "a value": lambda: UpdateOperator(task_id="t", target="a.b", set={"old": "t.sql"}),
    "a partition": lambda: DropPartitionsOperator(
        task_id="t", target="a.b", partitions=[{"name": "report.sql"}]
    ),
    "a condition": lambda: MergeIntoOperator(
        task_id="t",
        target="a.b",
        source=file_source("/land/dump.sql", "csv"),
        on="t.sql = s.sql",
        when=[{"when": "matched", "condition": "s.x > t.sql", "action": "delete"}],
    ),
    "a table": lambda: DeleteFromOperator(task_id="t", target="logs.sql", where="n = logs.sql"),
    "a statement": lambda: UpdateOperator(task_id="t", sql="UPDATE a.b SET x = b.sql"),
    "a comment": lambda: UpdateOperator(task_id="t", sql="UPDATE a.b SET x = 1 -- see x.sql"),
    "a list": lambda: StatementsOperator(
        task_id="t", statements=[sql_statement("s", "UPDATE a.b SET x = b.sql")]
    ),
}


@pytest.mark.parametrize("make", ENDING.values(), ids=ENDING)
def test_text_that_ends_like_a_file(server: Server, make: Callable[..., Any]) -> None:
    written = make()
    rendered = rendered_task(lambda up: make())

    for name in written.template_fields:
        assert getattr(rendered, name) == getattr(written, name)
    assert rendered.template_ext == ()


def test_sql_names_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a b.sql").write_text("UPDATE a.b SET x = {{ 1 + 1 }} -- like x.sql")
    for sql in ("a b.sql", ["a b.sql"]):

        def make(up: Any, sql: str | list[str] = sql) -> None:
            if isinstance(sql, str):
                UpdateOperator(task_id="t", sql=sql)
            else:
                UpdateOperator.partial(task_id="t").expand(sql=sql)

        at = 0 if isinstance(sql, list) else -1
        operator = rendered_task(make, at, template_searchpath=str(tmp_path))
        assert operator.sql == "UPDATE a.b SET x = 2 -- like x.sql"
        assert operator.sql_file == "a b.sql"


def test_what_a_task_returns_is_neither_rendered_nor_a_path(server: Server) -> None:
    server.results = {"up": [{"where": BRACES}, {"where": "{{ 1 }}"}]}
    partial = DeleteFromOperator.partial
    make = lambda up: partial(task_id="t", target="a.b").expand_kwargs(up)  # noqa: E731
    assert rendered_task(make, 1).where == "{{ 1 }}"
    server.results = {
        "up": [[{"name": "s", "operation": "sql", "sql": f"UPDATE a.b SET n = '{BRACES}'"}]]
    }
    operator = rendered_task(
        lambda up: StatementsOperator.partial(task_id="t").expand(statements=up), 0
    )
    assert statements(operator)[0].assignments[0].value == f"'{BRACES}'"


def test_a_row_of_a_query_as_a_partition(server: Server) -> None:
    server.results = {"up": BRACES}
    operator = rendered_task(
        lambda up: DropPartitionsOperator(task_id="t", target="a.b", partitions=[{"name": up}])
    )
    with all_known():
        assert operator.statement().partitions == ({"name": f"'{BRACES}'"},)


def ups(dag_task: Any) -> Any:
    return dag_task.dag.task_dict["ups"].output


LISTS = {
    "expected_partitions": (
        lambda given: InsertOverwriteOperator(
            task_id="t",
            target="a.b",
            source=table_source("a.s"),
            mode="dynamic",
            expected_partitions=given,
        ),
        [{"day": "1"}, {"day": "2"}],
    ),
    "when": (
        lambda given: MergeIntoOperator(
            task_id="t", target="a.b", source=table_source("a.s"), on="t.id = s.id", when=given
        ),
        [{"when": "matched", "condition": "s.x", "action": "delete"}] * 2,
    ),
    "statements": (
        lambda given: StatementsOperator(task_id="t", statements=given),
        [{"name": n, "operation": "sql", "sql": "TRUNCATE TABLE a.b"} for n in ("x", "y")],
    ),
    "partition": (
        lambda given: PartitionSensor(task_id="t", table="a.b", partition=given),
        [{"day": "1"}, {"day": "2"}],
    ),
}


@pytest.mark.parametrize(("name", "make", "items"), [(n, *v) for n, v in LISTS.items()], ids=LISTS)
def test_results_of_mapped_tasks_are_lists(
    server: Server, name: str, make: Callable[[Any], object], items: object
) -> None:
    server.results = {"ups": items}
    operator = rendered_task(lambda up: make(ups(up.operator)))

    assert getattr(operator, name) == items


@pytest.mark.parametrize("how", ["XCom", "dag.param", "literal", "template"])
def test_on_is_given_later(server: Server, how: str) -> None:
    server.results = {"up": "t.id = s.id"}

    def make(up: Any) -> None:
        dag = up.operator.dag
        given = {
            "XCom": up,
            "dag.param": dag.param("on"),
            "literal": literal("t.id = s.id"),
            "template": "{{ params.on }}",
        }
        MergeIntoOperator(
            task_id="t",
            target="a.b",
            source=table_source("a.s"),
            on=given[how],
            when=[{"when": "matched", "action": "delete"}],
        )

    operator = rendered_task(make, params={"on": "t.id = s.id"})
    assert operator.statement().on == "t.id = s.id"


def test_a_statement_of_a_list_takes_the_result_of_a_task(server: Server) -> None:
    server.results = {"up": "n = 5"}
    operator = rendered_task(
        lambda up: StatementsOperator(
            task_id="t",
            catalog_conn_id=up,
            statements=[{"name": "s", "operation": "delete_from", "target": "a.b", "where": up}],
        )
    )
    assert operator.upstream_task_ids == {"up"}
    assert statements(operator)[0].where == "n = 5"


DEFAULTS = {"session_time_zone": "Asia/Tokyo", "target_file_size": 4_096, "database": "shop"}


def test_defaults_reach_the_statements_of_a_list(server: Server) -> None:
    given = {"merge_source": table_source("a.s")}
    listed = [
        merge_into(
            "parts",
            target="a.b",
            source=given["merge_source"],
            on="t.id = s.id",
            when=[{"when": "matched", "action": "delete"}],
            session_time_zone="Europe/Berlin",
        ),
        sql_statement("text", "UPDATE orders SET n = 1"),
    ]
    operator = rendered_task(
        lambda up: StatementsOperator(task_id="t", statements=listed), default_args=DEFAULTS
    )
    with all_known():
        parts, text = operator._known_operators().values()
        assert parts.job_options().session_time_zone == "Europe/Berlin"
        assert text.job_options().session_time_zone == "Asia/Tokyo"
        assert text.job_options().target_file_size == 4_096
        assert str(text.target_table()) == "shop.orders"


def test_defaults_that_an_operator_cannot_use_are_ignored(server: Server) -> None:
    def make(up: Any) -> None:
        MergeIntoOperator(
            task_id="t",
            target="a.b",
            source=table_source("a.s"),
            on="t.id = s.id",
            when=[{"when": "matched", "action": "delete"}],
        )

    assert rendered_task(make, default_args=DEFAULTS).database is None


def test_a_task_group_has_defaults_of_its_own(server: Server) -> None:
    group: dict[str, Any] = {"session_time_zone": "Asia/Seoul"}
    with (
        DAG("d", schedule=None, start_date=DAY, default_args=DEFAULTS),
        TaskGroup("g", default_args=group),  # type: ignore[arg-type]
    ):
        operator = StatementsOperator(
            task_id="t", statements=[sql_statement("s", "UPDATE orders SET n = 1")]
        )
    assert operator.statement_defaults["session_time_zone"] == "Asia/Seoul"
    assert operator.statement_defaults["database"] == "shop"


def test_a_dry_run_has_no_output_from_its_start(server: Server) -> None:
    operator = rendered_task(
        lambda up: DeleteFromOperator(
            task_id="t", target="a.b", where="n = 1", dry_run="{{ 1 == 1 }}"
        )
    )
    assert operator.outlets == []
    assert operator.get_openlineage_facets_on_start().outputs == []


def test_a_parameter_that_is_needed_when_the_dag_is_parsed(server: Server) -> None:
    with pytest.raises(RequestError, match=r"deferrable: cannot be a template.* Remedy: Write its"):
        rendered_task(
            lambda up: FreshnessSensor(task_id="t", table="a.b", max_age=60, deferrable=up)
        )
