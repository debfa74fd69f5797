"""What the hook reads of tables, and what its connection says of itself."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_merge.hooks.paimon import PaimonHook
from spark_jobs.errors import (
    CatalogError,
    ErrorCode,
    InternalError,
    NotSupportedError,
    RequestError,
)
from tests.airflow.support import connection
from tests.support.paimon_metadata import TableFiles

TABLE = "shop.orders"


@pytest.fixture
def orders(warehouse: Path) -> TableFiles:
    table = TableFiles(warehouse).create()
    table.add({"2026-01-30": 5}, time_millis=1_700_000_000_000)
    table.add({"2026-01-30": 1, "2026-01-31": 2}, time_millis=1_700_000_100_000)
    return table


def test_reads(orders: TableFiles) -> None:
    hook = PaimonHook()
    orders.tag("first", 1)
    assert hook.latest_snapshot(TABLE).snapshot_id == 2
    assert hook.snapshot(TABLE, 1).time_millis == 1_700_000_000_000
    assert hook.snapshot(TABLE, 7) is None
    assert [tag.name for tag in hook.tags(TABLE)] == ["first"]
    assert hook.branches(TABLE) == []
    assert hook.schema(TABLE).partition_keys == ("day",)
    assert hook.row_count(TABLE) == 8
    assert [each.rows for each in hook.partitions(TABLE)] == [6, 2]
    (partition,) = hook.partitions(TABLE, {"day": "2026-01-31"})
    assert (partition.name, partition.files) == ("day=2026-01-31", 1)


@pytest.mark.parametrize(
    ("since", "ids"),
    [
        (None, [1, 2]),
        (1, [2]),
        (2, []),
        (datetime.fromtimestamp(1_700_000_100, UTC), [2]),
        (datetime.fromtimestamp(1_700_000_101, UTC), []),
    ],
)
def test_snapshots_since(orders: TableFiles, since: int | datetime | None, ids: list[int]) -> None:
    assert [each.snapshot_id for each in PaimonHook().snapshots(TABLE, since)] == ids


@pytest.mark.parametrize(("seconds", "ids"), [(100, [2]), (101, [])])
def test_a_time_without_a_time_zone_is_utc(
    orders: TableFiles, monkeypatch: pytest.MonkeyPatch, seconds: int, ids: list[int]
) -> None:
    since = datetime.fromtimestamp(1_700_000_000 + seconds, UTC).replace(tzinfo=None)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        found = PaimonHook().snapshots(TABLE, since)
    time.tzset()
    assert [each.snapshot_id for each in found] == ids


def test_diff(orders: TableFiles) -> None:
    first, second = PaimonHook().diff(TABLE, 1, 2)
    assert first.values == {"day": "2026-01-30"}
    assert (first.rows_before, first.rows_after) == (5, 6)
    assert (second.files_added, second.files_removed, second.rows_before) == (1, 0, 0)
    with pytest.raises(RequestError, match="no snapshot 7"):
        PaimonHook().diff(TABLE, 1, 7)


def test_rows_that_only_reading_can_tell(warehouse: Path) -> None:
    table = TableFiles(warehouse).create()
    table.add()
    schema = table.folder / "schema" / "schema-0"
    keyed = {**json.loads(schema.read_text()), "primaryKeys": ["day", "id"]}
    schema.write_text(json.dumps(keyed))
    with pytest.raises(NotSupportedError, match="versions of keys"):
        PaimonHook().row_count(TABLE)


def test_tables_that_are_not_there(orders: TableFiles) -> None:
    with pytest.raises(CatalogError, match=r"no table shop\.nothing") as error:
        PaimonHook().latest_snapshot("shop.nothing")
    assert error.value.code is ErrorCode.TABLE_NOT_FOUND
    with pytest.raises(RequestError, match="not a table name"):
        PaimonHook().latest_snapshot("orders")


def test_storage_that_fails(orders: TableFiles) -> None:
    snapshots = orders.folder / "snapshot"
    snapshots.rename(snapshots.with_name("away"))
    snapshots.symlink_to(snapshots)
    with pytest.raises(InternalError) as error:
        PaimonHook().latest_snapshot(TABLE)
    assert error.value.code is ErrorCode.STORAGE_UNAVAILABLE


def test_the_test_button(orders: TableFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PaimonHook().test_connection() == (
        True,
        f"{orders.warehouse} can be read. It has 1 database: shop.",
    )
    for extra, message in (
        ({"warehouse": "/nowhere"}, "WAREHOUSE_NOT_FOUND"),
        ({}, "warehouse: is empty"),
        ({"warehouse": "oss://bucket/lake"}, "warehouse: oss:// is not supported"),
        ({"warehouse": str(orders.warehouse), "metastore": "jdbc", "uri": "jdbc:x:y"}, "'jdbc'"),
    ):
        connection(monkeypatch, "lake", conn_type="paimon", login="a", password="b", extra=extra)
        ok, text = PaimonHook("lake").test_connection()
        assert not ok
        assert message in text


def test_the_test_button_names_databases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    connection(monkeypatch, "lake", conn_type="paimon", extra={"warehouse": str(tmp_path)})
    assert PaimonHook("lake").test_connection()[1].endswith("can be read. It has no databases.")
    for number in range(12):
        (tmp_path / f"d{number:02}.db").mkdir()
    (tmp_path / "_operations").mkdir()
    shown = ", ".join(f"d{number:02}" for number in range(10))
    text = PaimonHook("lake").test_connection()[1]
    assert text.endswith(f"It has 12 databases: {shown}, and 2 more.")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (None, "warehouse: is empty Remedy: Write it into the field Warehouse"),
        ("s3://bucket/lake", "warehouse: is empty, but Host is set, which is not read"),
    ],
)
def test_an_empty_warehouse_has_its_place(
    monkeypatch: pytest.MonkeyPatch, host: str | None, text: str
) -> None:
    connection(monkeypatch, "lake", conn_type="paimon", host=host)
    works, said = PaimonHook("lake").test_connection()
    assert not works
    assert text in said.replace("\n", " ")
    assert 'field Warehouse (extra: {"warehouse": "/path or scheme://path"})' in said
    assert "bucket" not in said


def test_a_connection_as_a_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = quote("s3://bucket/lake", safe="")
    endpoint = quote("http://minio:9000", safe="")
    uri = f"paimon://ACCESS:SE%2FCRET@/?warehouse={warehouse}&endpoint={endpoint}&region=eu"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", uri)
    assert BaseHook.get_connection("lake").conn_type == "paimon"
    hook = PaimonHook("lake")
    assert hook.catalog_spec().warehouse == "s3://bucket/lake"
    assert hook.catalog_spec().options["fs.s3.endpoint"] == "http://minio:9000"
    assert hook.credentials() == {"fs.s3.accessKeyId": "ACCESS", "fs.s3.accessKeySecret": "SE/CRET"}
