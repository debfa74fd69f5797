"""Databases, data sources of Spark and functions as sources, as operators ask for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.hooks.source_connections import (
    function_code,
    of_connection,
    source_credentials,
)
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import jdbc_source, python_source, spark_source
from spark_jobs.contract.catalogs import credentials_of
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec
from spark_jobs.errors import JobError, RequestError
from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, connection

pytestmark = pytest.mark.usefixtures("airflow_db")

DATABASE = {
    "conn_type": "postgres",
    "host": "db.example",
    "login": "planted-login",
    "password": PASSWORD,
    "schema": "shop db",
}
MERGE = """
from airflow_provider_merge.operators.sources import jdbc_source
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=jdbc_source("shop_db", query="SELECT id FROM orders WHERE day = '{{ params.day }}'"),
    on="t.id = s.id",
    when=[when_matched("s.id > 1").delete()],
)
"""


def request(source: dict[str, Any]) -> JobRequest:
    """What the worker sends."""
    sources = to_sources(source)
    hook = catalog_hook("paimon_default")
    spec = MergeSpec(
        sources[-1].name, "t.id = s.id", (MergeCase("matched", DeleteAction()),), "t", "s"
    )
    made = JobRequest("x", TableName("a", "b"), hook.catalog_spec(), spec, sources)
    return of_connection(made, hook)


def test_the_password_is_only_in_the_credentials(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection(monkeypatch, "shop_db", **DATABASE)
    run = dag_file(MERGE, arguments="params={'day': '2026-01-31'}").run()
    log = capsys.readouterr().out
    assert run.state == "success", log
    (source,) = submitter.request.sources
    assert isinstance(source, JdbcSource)
    assert source.url == "jdbc:postgresql://db.example:5432/shop%20db"
    assert source.query == "SELECT id FROM orders WHERE day = '2026-01-31'"
    (job,) = submitter.jobs
    given = credentials_of("shop_db", job.credentials)
    assert given == {"user": "planted-login", "password": PASSWORD}
    for secret in given.values():
        assert secret not in job.work.to_json()
        assert secret not in log


ADDRESSES = {
    "mysql": ({"conn_type": "mysql", "host": "h", "port": 7, "schema": "d"}, "jdbc:mysql://h:7/d"),
    "ipv6": ({"conn_type": "postgres", "host": "::1"}, "jdbc:postgresql://[::1]:5432/"),
    "jdbc": ({"conn_type": "jdbc", "host": "jdbc:mariadb://h/d"}, "jdbc:mysql://h/d"),
}


@pytest.mark.parametrize(("given", "url"), ADDRESSES.values(), ids=ADDRESSES)
def test_addresses(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], url: str
) -> None:
    connection(monkeypatch, "shop_db", **given)
    (source,) = request(jdbc_source("shop_db", table="t")).sources
    assert isinstance(source, JdbcSource)
    assert source.url == url


REFUSED = {
    "missing": ({}, "REQUEST_INVALID", "there is no connection 'shop_db'"),
    "type": ({"conn_type": "http", "host": "h"}, "REQUEST_INVALID", "has the type 'http'"),
    "host": ({"conn_type": "postgres"}, "REQUEST_INVALID", "has no host"),
    "iam": (
        {"conn_type": "postgres", "host": "h", "extra": {"iam": True}},
        *("NOT_SUPPORTED", "by a token of AWS"),
    ),
    "oracle": (
        {"conn_type": "jdbc", "host": "jdbc:oracle:thin:@h:1/x"},
        *("NOT_SUPPORTED", "no address of PostgreSQL"),
    ),
    "secret": (
        {"conn_type": "jdbc", "host": "jdbc:postgresql://h/d?user=a&password=b12345"},
        *("REQUEST_INVALID", "holds a secret"),
    ),
}


@pytest.mark.parametrize(("given", "code", "problem"), REFUSED.values(), ids=REFUSED)
def test_connections_that_cannot_be_used(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], code: str, problem: str
) -> None:
    if given:
        connection(monkeypatch, "shop_db", **given)
    with pytest.raises(JobError) as caught:
        request(jdbc_source("shop_db", table="t"))
    assert caught.value.code.name == code
    assert problem in caught.value.message
    assert caught.value.message.startswith("the source: conn_id: ")
    assert "b12345" not in str(caught.value)


def test_secret_options_are_passwords_of_connections(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "broker", conn_type="kafka", login="nobody", password=PASSWORD)
    source = spark_source(
        "kafka",
        options={"subscribe": "orders", "endingOffsets": "latest"},
        secret_options={"kafka.sasl.jaas.config": "broker"},
    )
    made = request(source)
    assert source_credentials(made) == {"connections[broker].password": PASSWORD}
    assert PASSWORD not in made.to_json()
    connection(monkeypatch, "broker", conn_type="kafka")
    with pytest.raises(RequestError) as caught:
        request(source)
    assert "connection 'broker' has no password" in caught.value.message


WRONG = {
    "both": (jdbc_source("c", query="q", table="t"), "source.query", "is given, and so is table"),
    "neither": (jdbc_source("c"), "source.query", "is missing, and so is table"),
    "semicolon": (jdbc_source("c", query="SELECT 1; "), "source.query", "ends with a semicolon"),
    "table": (jdbc_source("c", table="a; DROP"), "source.table", "is not the name of a table"),
    "partitions": (jdbc_source("c", table="t", partitions=2), "source.partitions", "goes with"),
    "one": (
        jdbc_source("c", table="t", partition_by="id", partitions=1),
        *("source.partitions", "must be 2 or more"),
    ),
    "fetch_size": (jdbc_source("c", table="t", fetch_size="many"), "source.fetch_size", "many"),
    "unknown": ({**jdbc_source("c", table="t"), "user": "a"}, "source.user", "unknown field"),
    "secret": (
        spark_source("kafka", options={"kafka.ssl.key.password": "x"}),
        *("source.options.kafka.ssl.key.password", "holds a secret"),
    ),
    "jdbc": (spark_source("jdbc"), "source.format", "is read by jdbc_source"),
    "csv": (spark_source("csv"), "source.format", "is read by file_source"),
    "parquet": (spark_source("Parquet"), "source.format", "is read by file_source"),
    "format": (spark_source("a b"), "source.format", "is not the name of a data source"),
    "function": (python_source("rows"), "source.function", "does not name a function"),
}


@pytest.mark.parametrize(("source", "place", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(source: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        to_sources(source)
    assert caught.value.message.startswith(f"{place}: ")
    assert problem in caught.value.message


def test_a_function_is_named_not_given() -> None:
    given: Any = len
    with pytest.raises(RequestError, match=r"function: is a function itself.*'module:function'"):
        python_source(given)


@pytest.mark.parametrize(
    "source", [python_source("{{ params.f }}"), spark_source("{{ params.f }}")], ids=["f", "format"]
)
def test_a_template_names_no_code(source: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        MergeIntoOperator(
            task_id="t",
            target="a.b",
            source=source,
            on="t.id = s.id",
            when=[when_matched().delete()],
        )
    assert "names code that runs" in str(caught.value)


def test_the_code_of_a_function_travels(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dags"
    folder.mkdir()
    code = "raise RuntimeError('nobody runs this here')\n"
    (folder / "sources_of_a_dag.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    (source,) = request(
        python_source("sources_of_a_dag:rows", arguments={"day": "2026-01-31", "most": 5})
    ).sources
    assert isinstance(source, PythonSource)
    assert (source.code, dict(source.arguments)) == (code, {"day": "2026-01-31", "most": 5})
    assert "sources_of_a_dag" not in sys.modules
    for name in ("sources_that_are_gone:rows", "json.gone.more:rows", "sys:exit"):
        with pytest.raises(RequestError) as caught:
            request(python_source(name))
        assert caught.value.message.startswith("the source: function: ")


def test_requests_keep_their_form(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "shop_db", **DATABASE)
    made = request(jdbc_source("shop_db", table="t", partition_by="id", partitions="4"))
    assert JobRequest.from_json(made.to_json()) == made
    assert json.loads(made.to_json())["sources"][0]["kind"] == "jdbc"


def test_no_package_of_a_function_is_run_where_a_dag_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "outer_of_a_function" / "inner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("raise SystemExit('was run')\n")
    (package / "rows.py").write_text("def made(spark, context): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "def made" in function_code("source.function", "outer_of_a_function.inner.rows:made")
    with pytest.raises(JobError, match=r"there is no module outer_of_a_function\.other"):
        function_code("source.function", "outer_of_a_function.other:made")
