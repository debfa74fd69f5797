"""Catalogs in AWS Glue, as hook, sensors and triggers read them: moto's, and any answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.triggers.gates import SnapshotGate, gate_arguments
from airflow_provider_merge.triggers.table import TableTrigger
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from spark_jobs.formats.iceberg import catalogs
from tests.airflow.cared_tables import Tries
from tests.airflow.support import PASSWORD, connection
from tests.airflow.test_iceberg_gates import found
from tests.airflow.test_iceberg_rest import answers, drips, sleeps
from tests.airflow.test_iceberg_tables import DAY
from tests.judge.glue_server import glue_beside_airflow
from tests.support.iceberg_tables import IcebergTable

__all__ = ["answers", "glue_beside_airflow"]
TABLE = "shop.orders"
KEY = {"login": "AKIATESTS", "password": PASSWORD}
REGION = {"type": "glue", "client.region": "eu-central-1"}


@pytest.fixture
def orders(
    glue_beside_airflow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IcebergTable]:
    """Five rows in a table, and the connection ``lake``."""
    fields: dict[str, Any] = {"conn_type": "iceberg", "host": glue_beside_airflow, **KEY}
    extra = {**REGION, "client.session-token": PASSWORD}
    connection(monkeypatch, "lake", extra=extra, **fields)
    keys = {"client.access-key-id": KEY["login"], "client.secret-access-key": PASSWORD}
    own = {"glue.endpoint": glue_beside_airflow, "warehouse": str(tmp_path)}
    catalog = GlueCatalog("tests", **REGION, **keys, **own)
    table = IcebergTable.create(catalog)
    table.append(DAY, "Oslo", rows=5)
    yield table
    catalog.drop_table(table.identifier)


def test_what_a_hook_tells(orders: IcebergTable, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook = IcebergHook("lake")
    latest = hook.latest_snapshot(TABLE)
    assert latest is not None
    assert latest.snapshot_id == orders.head
    assert hook.row_count(TABLE) == 5
    orders.append(DAY, "Rome", rows=2)
    assert hook.row_count(TABLE) == 7
    hive = {"Name": "old", "Parameters": {"EXTERNAL": "TRUE"}}
    orders.catalog.glue.create_table(DatabaseName="shop", TableInput=hive)  # type: ignore[attr-defined]
    assert hook.table_names(10) == [TableName("shop", "orders")]
    with pytest.raises(CatalogError, match="is no Iceberg table"):
        hook.table("shop.old")
    orders.catalog.glue.delete_table(DatabaseName="shop", Name="old")  # type: ignore[attr-defined]
    is_fine, said = hook.test_connection()
    assert (is_fine, "Its namespaces: shop." in said) == (True, True)
    for name in ("shop.none", "none.orders"):
        with pytest.raises(CatalogError) as error:
            hook.table(name)
        assert error.value.code is ErrorCode.TABLE_NOT_FOUND
    with pytest.raises(NotSupportedError, match="several levels"):
        hook.table("`a.b`.orders")
    assert PASSWORD not in caplog.text


def test_what_sensors_wait_for(orders: IcebergTable) -> None:
    table: dict[str, Any] = {"task_id": "t", "table": TABLE, "catalog_conn_id": "lake"}
    first = orders.head
    assert found(SnapshotSensor(after_id=first, **table)) is None
    orders.append(DAY + 1, "Rome")
    assert found(SnapshotSensor(after_id=first, **table))["snapshot_id"] == orders.head
    (partition,) = found(PartitionSensor(partition={"city": "Rome"}, **table))["partitions"]
    assert partition["rows"] == 1

    async def told() -> Any:
        wanted = gate_arguments(SnapshotGate(after_id=first))
        trigger = TableTrigger(TABLE, "lake", 0.05, wanted)
        async with contextlib.aclosing(trigger.run()) as events:
            return (await asyncio.wait_for(anext(events), 60)).payload

    assert asyncio.run(told())["facts"]["snapshot_id"] == orders.head


def test_what_there_is_to_do_to_its_tables(
    orders: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        orders.append(DAY, "Oslo")
    host, workspace = orders.catalog.properties["glue.endpoint"], str(tmp_path / "work")
    extra = {**REGION, "workspace": workspace, "spark-catalog-name": "lake"}
    connection(monkeypatch, "lake", conn_type="iceberg", host=host, extra=extra, **KEY)

    plan = Tries().run(
        dry_run=True, catalog_conn_id="lake", tables="lake.shop.*", older_than="0 s", retain_min=1
    )

    steps = {each["action"]: each for each in plan["tables"]}
    assert {name: each["status"] for name, each in steps.items()} == {
        "compact": "planned",
        "expire_snapshots": "planned",
    }
    assert (steps["compact"]["files"], steps["expire_snapshots"]["snapshots"]) == (5, 5)


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ((400, {"__type": "ExpiredTokenException"}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((400, {"__type": "ThrottlingException"}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((500, PASSWORD.encode()), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((302, {}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((200, b" " * 10_001), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        (sleeps, InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        (drips, InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((403, {}), CatalogError, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        (
            (400, {"__type": "UnrecognizedClientException", "message": PASSWORD}),
            CatalogError,
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
        ),
        ((200, b"no json"), CatalogError, ErrorCode.METADATA_UNREADABLE),
    ],
)
def test_what_is_no_answer(
    answers: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    answer: tuple[int, Any] | Callable[[Any], None],
    kind: type[JobError],
    code: ErrorCode,
) -> None:
    answers["/"] = answer
    answers["/elsewhere"] = (200, {})
    host = answers["host"]
    connection(monkeypatch, "lake", conn_type="iceberg", host=host, extra=REGION, **KEY)
    with pytest.raises(kind) as error:
        IcebergHook("lake").table(TABLE)
    assert error.value.code is code
    assert PASSWORD not in str(error.value)


def test_without_the_client_of_amazon(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "lake", conn_type="iceberg", extra=REGION, **KEY)
    catalogs._glue_class.cache_clear()
    monkeypatch.delitem(sys.modules, "pyiceberg.catalog.glue", raising=False)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(CatalogError, match=r"boto3 beside Airflow.*the extra glue") as error:
        IcebergHook("lake").table(TABLE)
    assert error.value.code is ErrorCode.LIBRARY_MISSING


def test_without_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    connection(monkeypatch, "lake", conn_type="iceberg", extra={"type": "glue"}, **KEY)
    with pytest.raises(JobError, match=r"NoRegionError.*Write client\.region") as error:
        IcebergHook("lake").table(TABLE)
    assert error.value.code is ErrorCode.REQUEST_INVALID
