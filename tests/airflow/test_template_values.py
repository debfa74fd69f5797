"""What expressions of templates may be: text, and what has a text of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from tests.airflow.contexts import Server, rendered_task


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def delete(**parameters: Any) -> DeleteFromOperator:
    return DeleteFromOperator(task_id="t", target="a.b", **parameters)


@pytest.mark.parametrize("name", ["var.value.get('nowhere')", "var.json.get('nowhere')"])
def test_a_variable_that_is_asked_for_without_a_default(name: str) -> None:
    with pytest.raises(AirflowFailException, match=r"^REQUEST_INVALID: where: is nothing: "):
        rendered_task(lambda up: delete(where=f"n = '{{{{ {name} }}}}'"))


NO_TEXT = {
    "a function": ("run_partition", "function"),
    "a macro": ("macros.ds_add", "function"),
    "a module": ("module", "module"),
    "a list": ("params.names", "list"),
    "a dict": ("{'a': 1}", "dict"),
    "a generator": ("params.names | map('upper')", "generator"),
    "an object": ("thing", "object"),
}


@pytest.mark.parametrize(("name", "kind"), NO_TEXT.values(), ids=NO_TEXT)
def test_an_expression_that_is_no_text(server: Server, name: str, kind: str) -> None:
    macros = {"thing": object(), "module": json}
    with pytest.raises(AirflowFailException) as raised:
        rendered_task(
            lambda up: TruncateTableOperator(
                task_id="t", target="a.b", partition={"day": f"{{{{ {name} }}}}"}
            ),
            params={"names": ["a", "b"]},
            user_defined_macros=macros,
        )

    assert f"partition.day: an expression in it is a {kind}, not a text" in str(raised.value)


def test_a_tuple_is_a_list_of_sql(server: Server) -> None:
    operator = rendered_task(
        lambda up: delete(where="n IN {{ (1, 2) }}"),
    )

    assert operator.where == "n IN (1, 2)"
