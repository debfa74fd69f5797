"""Tables as lake.shop.orders: the catalog is the connection's, by its ``spark-catalog-name``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.hooks.paimon import PaimonHook
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.errors import RequestError
from tests.airflow.support import DagFile, FakeSubmitter, connection
from tests.support.paimon_metadata import TableFiles

pytestmark = pytest.mark.usefixtures("airflow_db")

WAYS = {
    "target": """DeleteFromOperator(task_id="t", target="lake.shop.orders", where="id = 1")""",
    "text": """DeleteFromOperator(task_id="t", sql="DELETE FROM `lake`.shop.orders")""",
    "query of a statement": """InsertIntoOperator(
        task_id="t", sql="INSERT INTO shop.orders SELECT * FROM lake.shop.orders")""",
    "table source": """InsertIntoOperator(
        task_id="t", target="shop.orders", source=table_source("lake.shop.orders"))""",
    "list": """StatementsOperator(task_id="t", statements=[
        sql_statement("one", "DELETE FROM lake.shop.orders WHERE id = 1")])""",
    "query": """QueryOperator(task_id="t", sql="SELECT * FROM lake.shop.orders")""",
    "template": """DeleteFromOperator(
        task_id="t", sql="DELETE FROM {{ 'lake' }}.shop.orders WHERE id = 1")""",
}


@pytest.fixture
def lake(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A table with a snapshot, and how its connection gets a name."""
    TableFiles(warehouse).create().add({"2026-01-30": 5})

    def named(name: str) -> None:
        extra = {"warehouse": str(warehouse)} | ({"spark-catalog-name": name} if name else {})
        connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)

    return named


@pytest.mark.parametrize("body", WAYS.values(), ids=WAYS)
def test_the_name_of_the_connection_is_taken_off(
    lake: Callable[[str], None],
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    body: str,
) -> None:
    lake("lake")

    dag_file(body).run()

    (job,) = submitter.jobs
    requests: Any = getattr(job.work, "requests", (job.work,))
    for request in requests:
        assert "lake" not in _tables(request)
        assert '"shop"' in _tables(request)


@pytest.mark.parametrize("body", WAYS.values(), ids=WAYS)
def test_another_name_is_refused_before_spark(
    lake: Callable[[str], None],
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    body: str,
) -> None:
    lake("other")

    run = dag_file(body).run()

    assert run.state == "failed"
    assert submitter.jobs == []


@pytest.mark.parametrize(("name", "problem"), [("", "is empty, and"), ("other", "is 'other', and")])
def test_the_error_names_the_field_of_the_connection(
    lake: Callable[[str], None], name: str, problem: str
) -> None:
    lake(name)

    with pytest.raises(RequestError) as raised:
        PaimonHook().table("lake.shop.orders")

    assert raised.value.message == (
        f"connection 'paimon_default', spark-catalog-name: {problem} lake.shop.orders is in the "
        "catalog lake"
    )
    assert raised.value.remedy.startswith("Write shop.orders, or lake into")


def test_a_hook_takes_both_names(lake: Callable[[str], None]) -> None:
    lake("lake")

    assert PaimonHook().row_count("lake.shop.orders") == 5
    assert PaimonHook().table(TableName("shop", "orders", "lake"))  # type: ignore[truthy-bool]
    assert PaimonHook().row_count("shop.orders") == 5


def _tables(request: JobRequest) -> str:
    """What the request says but for where the warehouse is."""
    return json.dumps({**json.loads(request.to_json()), "catalog": None})
