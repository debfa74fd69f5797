"""Operators that clear partitions start Spark only for values that need it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.metadata.paimon.definition import PaimonDefinition
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from spark_jobs.contract.inserts import TruncateTableSpec
from spark_jobs.contract.request import TableName
from tests.airflow.support import DagFile, FakeSubmitter, committed

COLUMNS = {
    "id": "BIGINT",
    "Day": "DATE",
    "region": "STRING",
    "code": "VARCHAR(3)",
    "n": "INT NOT NULL",
    "flag": "BOOLEAN",
    "price": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(6)",
}
DAY = dt.date(2026, 1, 31)


@pytest.fixture
def table(warehouse: Path) -> Path:
    """The schema of ``shop.daily``, partitioned by all columns but ``id``."""
    path = warehouse / "shop.db" / "daily" / "schema" / "schema-0"
    path.parent.mkdir(parents=True)
    columns = enumerate(COLUMNS.items())
    fields = [{"id": id_, "name": name, "type": kind} for id_, (name, kind) in columns]
    keys = list(COLUMNS)[1:]
    path.write_text(json.dumps({"version": 3, "id": 0, "fields": fields, "partitionKeys": keys}))
    return path


def truncate(
    partition: dict[str, Any] | None = None, target: str = "shop.daily", **parameters: Any
) -> TruncateTableOperator:
    if partition is not None:
        parameters["partition"] = partition
    return TruncateTableOperator(task_id="t", target=target, **parameters)


def drop(*partitions: dict[str, Any]) -> DropPartitionsOperator:
    return DropPartitionsOperator(task_id="t", target="shop.daily", partitions=partitions)


def text(sql: str) -> DropPartitionsOperator | TruncateTableOperator:
    operator = DropPartitionsOperator if sql.startswith("ALTER") else TruncateTableOperator
    return operator(task_id="t", sql=sql)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "make",
    [
        truncate,
        lambda: truncate(target="shop.nowhere"),
        lambda: truncate({"DAY": "2026-01-31", "region": "eu-1", "code": "abc"}),
        lambda: truncate({"day": DAY, "n": 7, "flag": True, "price": None, "at": None}),
        lambda: truncate({"n": "007"}),
        lambda: drop({"day": DAY}, {"region": "", "day": None} | {"region": "eu"}),
        lambda: text("TRUNCATE TABLE shop.daily"),
        lambda: text("TRUNCATE TABLE shop.daily PARTITION (`day` = DATE '2026-01-31', n = 7)"),
        lambda: text("ALTER TABLE shop.daily DROP IF EXISTS PARTITION (day = '2026-01-31')"),
        lambda: text("ALTER TABLE shop.daily DROP PARTITION (flag = true), PARTITION (n = NULL)"),
        lambda: truncate({"id": 7}),
    ],
)
def test_no_session_for_plain_values(make: Callable[..., Any]) -> None:
    operator = make()
    assert not operator.needs_session()
    assert type(operator.get_submitter()) is PlainPythonSubmitter


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "make",
    [
        lambda: truncate({"day": "31.01.2026"}),
        lambda: truncate({"day": "2026-02-30"}),
        lambda: truncate({"day": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}),
        lambda: truncate({"region": "it's"}),
        lambda: truncate({"region": "a\\b"}),
        lambda: truncate({"code": "abcd"}),
        lambda: truncate({"n": "many"}),
        lambda: truncate({"n": 2**31}),
        lambda: truncate({"n": " 7"}),
        lambda: truncate({"flag": "yes"}),
        lambda: truncate({"price": Decimal("1.50")}),
        lambda: truncate({"at": "2026-01-31"}),
        lambda: truncate({"nowhere": "x"}),
        lambda: truncate({"region": "eu"}, target="shop.nowhere"),
        lambda: drop({"region": "eu"}, {"day": "soon"}),
        lambda: text("TRUNCATE TABLE shop.daily PARTITION (day = current_date())"),
        lambda: text("ALTER TABLE shop.daily DROP PARTITION (n = CAST('7' AS INT))"),
    ],
)
def test_a_session_for_all_others(make: Callable[[], Any]) -> None:
    operator = make()
    assert operator.needs_session()
    assert type(operator.get_submitter()) is SparkSubmitSubmitter


def test_a_session_where_the_schema_can_not_be_read(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text("{")
    assert truncate({"region": "eu"}).needs_session()
    told = capsys.readouterr().out
    assert "The job starts Spark, as shop.daily cannot be read from here: METADATA" in told


@pytest.mark.usefixtures("airflow_db", "table")
def test_a_task_reads_the_schema_once(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    definition = PaimonHook.definition

    def counted(hook: PaimonHook, target: TableName) -> PaimonDefinition:
        read.append(target)
        return definition(hook, target)

    monkeypatch.setattr(PaimonHook, "definition", counted)
    submitter.outcomes = [committed]
    partition = '{"day": "{{ params.d }}"}'
    body = f'TruncateTableOperator(task_id="t", target="shop.daily", partition={partition})'

    run = dag_file(body, arguments='params={"d": "2026-01-31"}').run()

    assert run.state == "success"
    assert submitter.request.statement == TruncateTableSpec({"day": "'2026-01-31'"})
    assert len(read) == 1
    (ti,) = run.get_task_instances()
    assert ti.xcom_pull(task_ids="t", key="both_compilers") is None
