"""The pages of the operators: text and parameters are one request, examples are as shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import table_source
from airflow_provider_merge.sql.create_table import parse_create_table

ROOT = Path(__file__).resolve().parents[2]
STATEMENTS = {  # the example DAG of a statement -> its page, and the part of that page
    "merge_orders": ("merge_into", None),
    "settle_orders": ("update_and_delete", "UPDATE"),
    "forget_customers": ("update_and_delete", "DELETE"),
}
GUIDES = sorted((ROOT / "docs" / "operators").glob("*.md"))
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))


def blocks(page: str, language: str, part: str | None = None) -> list[str]:
    text = (ROOT / "docs" / "operators" / f"{page}.md").read_text()
    if part is not None:
        text = text.partition(f"\n### {part}\n")[2].partition("\n### ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def operator_of(code: str) -> Any:
    """The operator that a block makes."""
    return eval(code[code.index("\n\n") :].strip(), names_of(code))


def names_of(code: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(code[: code.index("\n\n")], names)
    return names


def example(dag_id: str) -> DAG:
    """The example DAG, its files resolved as Airflow does it."""
    path = ROOT / "dags_examples" / f"{dag_id}.py"
    names: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    dag: DAG = names["dag"]
    dag.fileloc = str(path)
    dag.resolve_template_files()
    return dag


def asked(operator: Any) -> tuple[Any, Any, Any]:
    statement = operator.statement()
    return operator.target_table(), statement, operator.request_sources()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_text_and_parameters_are_one_request(statement: str) -> None:
    page, part = STATEMENTS[statement]
    text, parameters = (operator_of(code) for code in blocks(page, "python", part)[:2])
    (sql,) = blocks(page, "sql", part)
    text.sql = sql
    assert asked(text) == asked(parameters)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_example_dag_runs_the_statement_of_the_page(statement: str) -> None:
    page, part = STATEMENTS[statement]
    shown = operator_of(blocks(page, "python", part)[0])
    (shown.sql,) = blocks(page, "sql", part)
    target, run, _ = asked(example(statement).task_dict[statement])
    wanted = asked(shown)
    assert target == wanted[0]
    assert without_layout(run) == without_layout(wanted[1])


def without_layout(statement: object) -> str:
    return " ".join(repr(statement).replace("\\n", " ").split())


def test_the_example_of_the_sql_page_is_read() -> None:
    (sql,) = blocks("sql", "sql")
    operator = MergeIntoOperator(
        task_id="page",
        sql=sql.replace("{{ ds }}", "2024-05-06"),
        sources={"updates": table_source("shop.updates")},
    )
    names = [source.name for source in operator.request_sources()]
    assert names == ["updates", "latest", "shop__customers", "merge_source"]


def test_the_shown_error_is_the_real_one() -> None:
    page = (ROOT / "docs" / "operators" / "sql.md").read_text()
    (shown,) = re.findall(r"^SYNTAX_ERROR: (.*)$", page, re.MULTILINE)
    with pytest.raises(Exception, match="SYNTAX_ERROR") as caught:
        MergeIntoOperator(
            task_id="page",
            sql="MERGE INTO a.b AS t\nUSING a.c AS s ON t.id = s.id\nWHEN MATCHED AND THEN DELETE",
        )
    assert caught.value.message == shown  # type: ignore[attr-defined]


def test_overwriting_a_day_as_text_and_as_parameters() -> None:
    text, parameters = (operator_of(code) for code in blocks("insert_overwrite", "python"))
    (text.sql,) = blocks("insert_overwrite", "sql")
    for operator in (text, parameters):
        operator.statement()
    assert text.target_table() == parameters.target_table()
    assert text.statement().mode == parameters.statement().mode == "static"
    assert text.statement().partition == parameters.statement().partition


def test_a_table_as_text_and_as_parameters() -> None:
    code, of_source = blocks("create_table", "python")
    assert [each.path for each in operator_of(of_source).request_sources()] == [
        "/data/landed/clicks"
    ]
    sql, like, with_transforms = blocks("create_table", "sql")
    assert parse_create_table(like)[1].like == "`shop`.`orders`"
    assert parse_create_table(with_transforms)[1].format == "iceberg"
    parameters = operator_of(code)
    text = CreateTableOperator(task_id="create_orders", sql=sql)
    assert text.statement() == parameters.statement()
    assert text.target_table() == parameters.target_table()


def test_an_altered_table_as_text_and_as_parameters() -> None:
    code = blocks("alter_table", "python")[0]
    (sql,) = blocks("alter_table", "sql")
    parameters = operator_of(code)
    text = AlterTableOperator(task_id="alter_orders", sql=sql)
    assert text.statement().changes == parameters.statement().changes[:2]
    assert text.target_table() == parameters.target_table()


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_page_has_the_parts_of_a_how_to_guide(guide: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", guide.read_text(), re.MULTILINE)
    assert any(re.fullmatch("Using the operators?", each) for each in headings)
    assert headings[-1] == "Reference"


@pytest.mark.parametrize("guide", [*GUIDES, *RECIPES], ids=lambda path: path.stem)
def test_a_page_shows_an_example_dag_as_it_is(guide: Path) -> None:
    before, *excerpts = re.split(r"^```py\n", guide.read_text(), flags=re.MULTILINE)
    assert excerpts
    for excerpt in excerpts:
        example_dag = re.findall(r"\]\((\.\./\.\./dags_examples/[^)]*\.py)\)", before)[-1]
        assert excerpt.partition("```\n")[0] in (guide.parent / example_dag).read_text()
        before += excerpt


def test_airflow_is_told_of_every_guide() -> None:
    (integration,) = get_provider_info()["integrations"]
    listed = integration["how-to-guide"]
    assert {f"/docs/operators/{guide.name}" for guide in GUIDES} <= set(listed)
    assert [each for each in listed if not (ROOT / each.lstrip("/")).is_file()] == []
