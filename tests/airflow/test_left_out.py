"""What is left out, given inside of something else, or no template at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import jinja2
import pytest
from airflow.sdk import (
    DAG,
    AssetOrTimeSchedule,
    MultipleCronTriggerTimetable,
    task_group,
)
from airflow.sdk.definitions._internal.types import NOTSET
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from jinja2 import StrictUndefined, Undefined

from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.operators.statement_list import delete_from, truncate_table
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.run_partition import run_partition
from airflow_provider_merge.templates import all_known
from tests.airflow.contexts import DAY, Server, context_of, rendered_task


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


DEFAULTS = {"dry_run": True, "where": "n = 1"}


def test_notset_is_the_default_of_the_dag() -> None:
    task = rendered_task(
        lambda _: DeleteFromOperator(task_id="t", target="a.b", where=NOTSET, dry_run=NOTSET),
        default_args=DEFAULTS,
    )
    assert (task.where, task.dry_run) == ("n = 1", True)


def test_notset_in_a_list_of_statements_is_it_too() -> None:
    task = rendered_task(
        lambda _: StatementsOperator(
            task_id="t",
            statements=[delete_from("s", target="a.b", where=NOTSET)],
            dry_run=NOTSET,  # type: ignore[arg-type]
        ),
        default_args=DEFAULTS,
    )
    with all_known():
        assert task._known_operators()["s"].where == "n = 1"
        assert task._is_dry_run()


def test_notset_in_a_mapped_task_is_nothing() -> None:
    def make(_: object) -> None:
        DeleteFromOperator.partial(task_id="t", target="a.b").expand(where=[NOTSET, "n = 1"])

    with pytest.raises(AirflowFailException, match="where: is left out in instance 0"):
        rendered_task(make, map_index=0)


LIST_DEFAULTS = {
    "an expression": ("where", "n = {{ params.n }}", "is nothing"),
    "an unknown name": ("database", "x{{ nowhere }}", "is nothing"),
    "a syntax error": ("where", "{{ }", "cannot be rendered"),
}
OF_LISTS = {
    "where": delete_from("s", target="a.b"),
    "database": delete_from("s", sql="DELETE FROM b"),
}


@pytest.mark.parametrize(("name", "given", "problem"), LIST_DEFAULTS.values(), ids=LIST_DEFAULTS)
@pytest.mark.parametrize("undefined", [jinja2.StrictUndefined, jinja2.Undefined])
def test_defaults_of_statements_are_never_nothing(
    name: str, given: str, problem: str, undefined: type[StrictUndefined | Undefined]
) -> None:
    with pytest.raises(AirflowFailException, match=f"default_args.{name}: {problem}"):
        rendered_task(
            lambda _: StatementsOperator(task_id="t", statements=[OF_LISTS[name]]),
            params={"n": None},
            default_args={name: given},
            template_undefined=undefined,
        )


def test_a_result_inside_a_default_of_statements_is_never_nothing(server: Server) -> None:
    server.results = {"up": None}

    def make(up: Any) -> None:
        StatementsOperator(
            task_id="t",
            statements=[truncate_table("s", target="a.b")],
            default_args={"partition": {"day": up}},
        )

    with pytest.raises(AirflowFailException, match=r"default_args.partition.day: is None"):
        rendered_task(make)


GROUPS = {
    "a partition": (
        lambda a: TruncateTableOperator(task_id="t", target="a.b", partition=a),
        lambda up: {"day": up},
        r"partition\.day: is None",
    ),
    "a value of a partition": (
        lambda a: TruncateTableOperator(task_id="t", target="a.b", partition={"day": a}),
        lambda up: {"x": up},
        r"partition\.day\.x: is None",
    ),
    "statements": (
        lambda a: StatementsOperator(task_id="t", statements=a),
        lambda up: [truncate_table("s", target="a.b", partition={"day": up})],
        r"statements\[0\]\..*day: is None",
    ),
    "configuration": (
        lambda a: DeleteFromOperator(task_id="t", target="a.b", where="n", conf=a),
        lambda up: {"spark.x": up},
        r"conf\.spark\.x: is None",
    ),
}


@pytest.mark.parametrize(("operator", "value", "problem"), GROUPS.values(), ids=GROUPS)
def test_a_result_inside_an_argument_of_a_mapped_group_is_never_nothing(
    server: Server, operator: Callable[..., Any], value: Callable[..., Any], problem: str
) -> None:
    server.results = {"up": None}

    def make(up: Any) -> None:
        @task_group
        def group(a: Any) -> None:
            operator(a)

        group.expand(a=[value(up)])

    with pytest.raises(AirflowFailException, match=problem):
        rendered_task(make, map_index=0)


def test_an_item_that_is_skipped_leaves_the_others(server: Server) -> None:
    server.results = {"up": [1, 2]}

    def chosen(number: int) -> dict[str, Any]:
        if number == 1:
            raise AirflowSkipException
        return {"where": f"n = {number}"}

    def make(up: Any) -> None:
        DeleteFromOperator.partial(task_id="t", target="a.b").expand_kwargs(up.map(chosen))

    assert rendered_task(make, map_index=1).where == "n = 2"
    with pytest.raises(AirflowSkipException):
        rendered_task(make, map_index=0)


@pytest.mark.parametrize("text", ["n = 'a\r\nb'", "n = 'a\rb'", "n = 1\n", "\n n = 1"])
def test_a_text_without_templates_stays_as_it_is(text: str) -> None:
    assert (
        rendered_task(lambda _: DeleteFromOperator(task_id="t", target="a.b", where=text)).where
        == text
    )


def test_the_end_of_a_text_with_a_template_stays() -> None:
    text = "n = '{{ 1 }}'\n"
    task = rendered_task(lambda _: DeleteFromOperator(task_id="t", target="a.b", where=text))
    assert task.where == "n = '1'\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_separator_of_lines(end: str) -> None:
    task = rendered_task(
        lambda _: InsertIntoOperator(
            task_id="t", target="a.b", source=file_source("/x", "csv", options={"lineSep": end})
        )
    )
    assert task.source["options"]["lineSep"] == end


@pytest.mark.parametrize(
    "template", ["{{ params.n + 1 }}", "{{ 1 / 0 }}", "{{ '%d' % params.n }}", "{{ {}['a'] + 1 }}"]
)
def test_an_expression_that_fails_names_the_parameter(template: str) -> None:
    with pytest.raises(AirflowFailException, match=r"(?s)where: .*Remedy: "):
        rendered_task(
            lambda _: DeleteFromOperator(task_id="t", target="a.b", where=f"n = {template}"),
            params={"n": None},
        )


def test_the_zone_of_several_crons_beside_assets() -> None:
    crons = MultipleCronTriggerTimetable("0 0 * * *", "0 12 * * *", timezone="Europe/Berlin")
    schedule = AssetOrTimeSchedule(timetable=crons, assets=[table_asset("lake", "a.b")])
    with DAG("d", schedule=schedule, start_date=DAY):
        task = DeleteFromOperator(task_id="t", target="a.b", where="n")
    midnight = datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert run_partition(context_of(task, "scheduled", midnight)) == "2026-03-29"


def test_a_number_is_no_boolean() -> None:
    with pytest.raises(Exception, match="max_new_partitions: True is not a positive whole number"):
        DeleteFromOperator(task_id="t", target="a.b", where="n", max_new_partitions=True)
