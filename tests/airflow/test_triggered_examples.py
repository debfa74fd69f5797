"""Example DAGs without a schedule, triggered without a logical date."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_merge.operators._shared.statement import StatementOperator
from tests.airflow.contexts import context_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, README = ROOT / "dags_examples", ROOT / "README.md"
TRIGGERED = {
    "merge_orders": "/landing/updates/2024-05-06",
    "settle_orders": "/landing/payments/2024-05-06",
    "forget_customers": "/landing/forget/2024-05-06",
    "iceberg_orders": "/landing/orders/2024-05-06",
}


def task_of(dag_id: str) -> Any:
    path = EXAMPLES / f"{dag_id}.py"
    names: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["dag"].task_dict[dag_id].prepare_for_execution()


def path_of(task: Any, **run: Any) -> str:
    task.render_template_fields(context_of(task, **run))
    return task.request_sources()[0].path


@pytest.mark.parametrize("dag_id", TRIGGERED)
def test_the_day_that_was_chosen(dag_id: str) -> None:
    assert path_of(task_of(dag_id), conf={"day": "2024-05-06"}) == TRIGGERED[dag_id]


@pytest.mark.parametrize("dag_id", TRIGGERED)
def test_the_logical_date(dag_id: str) -> None:
    day = datetime(2024, 5, 6, tzinfo=UTC)

    assert path_of(task_of(dag_id), logical_date=day) == TRIGGERED[dag_id]


@pytest.mark.parametrize("dag_id", TRIGGERED)
def test_without_either_the_run_fails_with_what_to_do(dag_id: str) -> None:
    with pytest.raises(AirflowFailException, match="a value for 'day'"):
        path_of(task_of(dag_id))


def test_the_first_dag_of_the_readme_runs_for_what_was_chosen() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace('"@daily"):', '"@daily") as dag:'), names)
    (task,) = names["dag"].tasks

    path = path_of(task.prepare_for_execution(), conf={"partition": "2024-05-06"})

    assert path == "/landing/orders/2024-05-06"


def test_no_dag_without_a_schedule_needs_a_logical_date() -> None:
    found = set()
    for path in sorted(EXAMPLES.glob("*.py")):
        names: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
        text = path.read_text()
        if "DAG(" not in text:
            continue
        exec(compile(text, str(path), "exec"), names)
        for dag in (each for each in names.values() if isinstance(each, DAG)):
            if dag.schedule is None:
                found.add(dag.dag_id)  # type: ignore[unreachable]
                operators = [each for each in dag.tasks if isinstance(each, StatementOperator)]
                fields = [getattr(o, name) for o in operators for name in o.template_fields]
                assert "{{ ds" not in repr(fields), dag.dag_id
    assert {*TRIGGERED, "daily_summary_repair"} <= found
