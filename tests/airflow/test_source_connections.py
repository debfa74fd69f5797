"""Sources of another connection: found before Spark starts, with secrets of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.hooks.source_connections import of_connection, source_hook
from spark_jobs.contract.catalogs import credentials_of, of_catalog
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import JobRequest, TableName, TableSource
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.contract.table_versions import ChangeRange, TableVersion
from spark_jobs.errors import JobError, RequestError
from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, connection
from tests.support.iceberg_tables import IcebergTable

pytestmark = pytest.mark.usefixtures("airflow_db")

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=table_source("shop.days", conn_id="{{ params.conn_id }}", **{more!r}),
    on="t.id = s.id",
    when=[when_matched("s.id > 1").delete()],
    retries=1,
)
"""
OTHER = "other-planted-secret"


def task(dag_file: Callable[..., DagFile], conn_id: str, **more: Any) -> DagFile:
    return dag_file(
        MERGE.replace("{more!r}", repr(more)), arguments=f"params={{'conn_id': {conn_id!r}}}"
    )


def test_each_catalog_with_its_own_secrets(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    warehouse: Path,
    iceberg_catalog: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    IcebergTable.create(iceberg_catalog, ("shop", "days"))
    extra = {"warehouse": str(warehouse), "options": {"fs.s3.securityToken": PASSWORD}}
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)
    given = json.loads(os.environ["AIRFLOW_CONN_ICEBERG_DEFAULT"])
    given["extra"] = {**given["extra"], "custom.secret-key": OTHER}
    connection(monkeypatch, "iceberg_default", **given)

    run = task(dag_file, "iceberg_default").run()

    assert run.state == "success", capsys.readouterr().out
    (job,) = submitter.jobs
    (source,) = submitter.request.sources
    assert isinstance(source, TableSource)
    assert source.catalog is not None
    assert (source.connection, source.catalog.connector) == ("iceberg_default", "iceberg")
    assert of_catalog(job.credentials) == {"fs.s3.securityToken": PASSWORD}
    assert credentials_of("iceberg_default", job.credentials) == {"custom.secret-key": OTHER}
    log = capsys.readouterr().out
    for secret in (PASSWORD, OTHER):
        assert secret not in job.work.to_json()
        assert secret not in log


@pytest.mark.parametrize(
    ("conn_id", "message"),
    [
        ("nowhere", "the source: conn_id: there is no connection 'nowhere'"),
        ("spark_default", "the source: conn_id: connection 'spark_default' has the type 'spark'"),
    ],
)
def test_no_such_connection(warehouse: Path, conn_id: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        source_hook(TableSource("merge_source", TableName("shop", "days"), connection=conn_id))
    assert caught.value.message.startswith(message)


def test_metadata_of_the_other_catalog_is_asked(warehouse: Path, iceberg_catalog: Any) -> None:
    IcebergTable.create(iceberg_catalog, ("shop", "days"))
    check = MetadataCheck(catalog_hook("paimon_default"), shares_files=True)
    days = TableSource("s", TableName("shop", "days"), connection="iceberg_default")
    (relation,) = check.require_sources([days]).values()
    assert relation.columns is not None
    assert list(relation.columns) == ["id", "ts", "city"]
    wrong = {
        replace(days, table=TableName("shop", "gone")): "TABLE_NOT_FOUND",
        replace(days, at=TableVersion(tag="gone")): "TAG_NOT_FOUND",
        replace(days, connection=None): "TABLE_NOT_FOUND",
    }
    for source, code in wrong.items():
        with pytest.raises(JobError) as caught:
            check.require_sources([source])
        assert caught.value.code.name == code


def test_the_same_catalog_by_another_name_is_the_same(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = json.loads(os.environ["AIRFLOW_CONN_PAIMON_DEFAULT"])
    connection(monkeypatch, "twin", **given)
    hook = catalog_hook("paimon_default")
    days = TableSource("s", TableName("shop", "days"), connection="twin")
    query = QuerySpec("s")
    made = of_connection(JobRequest("x", None, hook.catalog_spec(), query, (days,)), hook)
    assert made.sources == (replace(days, connection=None),)


@pytest.mark.parametrize("spelt", ["{}", "file://{}/", "{}//"])
def test_a_table_does_not_follow_itself_by_another_name(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, spelt: str
) -> None:
    given = json.loads(os.environ["AIRFLOW_CONN_PAIMON_DEFAULT"])
    extra = {**given["extra"], "warehouse": spelt.format(warehouse)}
    connection(monkeypatch, "twin", **{**given, "extra": extra})
    hook, days = catalog_hook("paimon_default"), TableName("shop", "days")
    changes = TableSource("s", days, changes=ChangeRange("all"), connection="twin")
    statement = DeleteSpec("id IN (SELECT id FROM s)", "t")
    request = JobRequest("x", days, hook.catalog_spec(), statement, (changes,))
    with pytest.raises(JobError, match=r"that is of the target itself, shop\.days"):
        of_connection(request, hook)
    other = replace(changes, table=TableName("shop", "hours"))
    assert of_connection(replace(request, sources=(other,)), hook).sources


def test_the_inlet_is_the_other_catalogs(dag_file: Callable[..., DagFile]) -> None:
    text = MERGE.replace("{{ params.conn_id }}", "iceberg_default").replace("{more!r}", "{}")
    file = dag_file(text)
    (inlet,) = file.dag().task_dict["merge"].inlets
    file.path.unlink()
    assert "iceberg_default" in inlet.uri
