"""Schema evolution: which operators take it, what is refused, and what users see afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.operators._shared.results import (
    asset_extra,
    result_table,
    xcom_value,
)
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import table_source
from airflow_provider_merge.operators.statement_list import (
    delete_from,
    insert_into,
    merge_into,
    sql_statement,
)
from airflow_provider_merge.operators.statements import StatementsOperator
from spark_jobs.errors import JobError, RequestError
from tests.airflow.support import committed, example_request

MERGE = "MERGE {}INTO shop.orders AS t USING shop.new AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
TEXTS = {
    MergeIntoOperator: (MERGE, {}),
    InsertIntoOperator: ("INSERT {}INTO shop.orders TABLE shop.new", {}),
    InsertOverwriteOperator: ("INSERT {}OVERWRITE shop.orders TABLE shop.new", {"mode": "table"}),
}
SOURCE = {"target": "shop.orders", "source": table_source("shop.new")}
PARTS: dict[type, dict[str, Any]] = {
    MergeIntoOperator: {**SOURCE, "on": "t.id = s.id", "when": [when_matched().update_all()]},
    InsertIntoOperator: SOURCE,
    InsertOverwriteOperator: {**SOURCE, "mode": "table"},
}
WORDS = "WITH SCHEMA EVOLUTION "
OPERATORS = pytest.mark.parametrize("operator", TEXTS, ids=lambda each: each.__name__)


def given_only(**parameters: Any) -> dict[str, Any]:
    """Those that are not None: None would be given, and nothing."""
    return {name: value for name, value in parameters.items() if value is not None}


def from_text(operator: Any, words: str = "", **parameters: Any) -> Any:
    sql, others = TEXTS[operator]
    return operator(task_id="task", sql=sql.format(words), **others, **parameters)


def from_parts(operator: Any, **parameters: Any) -> Any:
    return operator(task_id="task", **PARTS[operator], **parameters)


@OPERATORS
class TestParameters:
    @pytest.mark.parametrize(
        ("words", "given", "evolves"),
        [
            ("", None, False),
            ("", False, False),
            ("", True, True),
            ("", "True", True),
            (WORDS, None, True),
            (WORDS, False, True),
            (WORDS, True, True),
        ],
    )
    def test_text_or_parameter_turns_it_on(
        self, operator: Any, words: str, given: bool | str | None, evolves: bool
    ) -> None:
        task = from_text(operator, words, **given_only(schema_evolution=given))
        assert task.statement().schema_evolution is evolves

    @pytest.mark.parametrize(("given", "evolves"), [(None, False), ("false", False), (True, True)])
    def test_without_a_text(self, operator: Any, given: str | bool | None, evolves: bool) -> None:
        task = from_parts(operator, **given_only(schema_evolution=given))
        assert task.statement().schema_evolution is evolves

    @pytest.mark.parametrize(("given", "widens"), [(True, True), ("true", True), (False, None)])
    def test_type_widening(self, operator: Any, given: bool | str, widens: bool | None) -> None:
        text = from_text(operator, WORDS, type_widening=given)
        parts = from_parts(operator, schema_evolution=True, type_widening=given)
        assert [each.job_options().type_widening for each in (text, parts)] == [widens, widens]

    @pytest.mark.parametrize("name", ["schema_evolution", "type_widening"])
    @pytest.mark.parametrize("other", [None, "{{ params.x }}"])
    def test_neither_true_nor_false(self, operator: Any, name: str, other: str | None) -> None:
        problem = f"^REQUEST_INVALID: task 'task': {name}: 'perhaps' is neither true nor false"
        with pytest.raises(RequestError, match=problem):
            from_text(operator, **{name: "perhaps"}, **given_only(driver_memory=other))
        with pytest.raises(RequestError, match=problem):
            from_parts(operator, **{name: "perhaps"}, **given_only(driver_memory=other))

    @pytest.mark.parametrize("other", [None, "{{ params.x }}"])
    def test_type_widening_alone(self, operator: Any, other: str | None) -> None:
        for build in (from_text, from_parts):
            with pytest.raises(RequestError, match="type_widening: needs schema_ev") as caught:
                build(operator, type_widening=True, **given_only(driver_memory=other))
            assert caught.value.remedy.startswith("Set schema_evolution")

    def test_templates_are_checked_when_they_are_rendered(self, operator: Any) -> None:
        task = from_text(operator, schema_evolution="{{ params.x }}", type_widening=True)
        task.schema_evolution = "true"
        task.check_request()
        task.schema_evolution = "false"
        with pytest.raises(RequestError, match="type_widening: needs schema_evolution"):
            task.check_request()

    def test_a_text_that_is_known_later(self, operator: Any) -> None:
        _, others = TEXTS[operator]
        operator(task_id="task", sql="{{ params.sql }}", type_widening=True, **others)


def test_no_other_operator_takes_them() -> None:
    with pytest.raises(TypeError, match="schema_evolution"):
        DeleteFromOperator(task_id="task", target="shop.orders", schema_evolution=True)


class TestLists:
    LISTED = (
        sql_statement("text", MERGE.format(WORDS), type_widening=True),
        merge_into("parts", **PARTS[MergeIntoOperator], schema_evolution=True),
        insert_into("more", **SOURCE, schema_evolution="true", type_widening=False),
    )

    def test_each_statement_has_its_own(self) -> None:
        task = StatementsOperator(task_id="task", statements=self.LISTED)
        found = task._known_operators().values()
        assert [each.statement().schema_evolution for each in found] == [True, True, True]
        assert [each.job_options().type_widening for each in found] == [True, None, None]

    @pytest.mark.parametrize(
        ("statement", "problem"),
        [
            (sql_statement("a", MERGE.format(""), type_widening=True), "needs schema_evolution"),
            (delete_from("a", target="a.b", type_widening=True), "is not a parameter of DeleteFr"),
        ],
    )
    def test_refused(self, statement: dict[str, Any], problem: str) -> None:
        message = f"statement 'a': type_widening: {problem}"
        with pytest.raises(JobError, match=f"^REQUEST_INVALID: task 'task': {message}"):
            StatementsOperator(task_id="task", statements=[statement])


class TestResults:
    CHANGES = ("added city STRING", "widened amount from INT to BIGINT")

    def test_the_task_returns_them(self) -> None:
        result = committed(example_request(), schema_changes=self.CHANGES)
        assert xcom_value(result)["schema_changes"] == list(self.CHANGES)

    def test_the_event_has_them_if_there_are_any(self) -> None:
        result = committed(example_request(), schema_changes=self.CHANGES)
        assert asset_extra("merge", result)["schema_changes"] == list(self.CHANGES)
        assert "schema_changes" not in asset_extra("merge", committed(example_request()))

    @pytest.mark.parametrize(
        ("status", "what"), [("committed", "schema"), ("dry_run", "schema would change")]
    )
    def test_the_log_tells_them(self, status: str, what: str) -> None:
        result = committed(example_request(), status=status, schema_changes=self.CHANGES)
        line = f"  {what}: added city STRING | widened amount from INT to BIGINT"
        assert line in result_table(result).splitlines()
        assert "schema" not in result_table(committed(example_request()))
