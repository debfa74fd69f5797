"""What Airflow reads and writes of a warehouse in HDFS, with hdfs-native."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.arrow import HadoopFileSystem

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.storage.files import (
    list_names,
    modified,
    read_text,
    remove,
    remove_folder,
    write_text,
)
from airflow_provider_merge.storage.warehouse import require_folder
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError, RequestError
from tests.airflow.support import connection
from tests.judge.hdfs_server import Hdfs, hdfs_beside_airflow
from tests.support.paimon_metadata import TableFiles

__all__ = ["hdfs_beside_airflow"]
pytestmark = pytest.mark.slow  # the first run fetches the server

TARGET = TableName("shop", "orders")


def lake(monkeypatch: pytest.MonkeyPatch, warehouse: str, **changes: Any) -> PaimonHook:
    extra = {"warehouse": warehouse, **changes}
    connection(monkeypatch, "lake", conn_type="paimon", extra=extra)
    return PaimonHook("lake")


@pytest.fixture
def warehouse(hdfs_beside_airflow: Hdfs) -> str:
    return hdfs_beside_airflow.new_warehouse()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, warehouse: str) -> PaimonHook:
    return lake(monkeypatch, warehouse)


def test_small_files_are_written_replaced_listed_read_and_removed(
    hook: PaimonHook, warehouse: str
) -> None:
    options = hook.storage_options()
    folder = f"{warehouse}/_operations"
    assert read_text(f"{folder}/one.json", options) is None
    assert list_names(folder, options) == []

    write_text(f"{folder}/one.json", "ü", options)
    write_text(f"{folder}/one.json", "äö", options)

    assert read_text(f"{folder}/one.json", options) == "äö"
    assert list_names(folder, options) == ["one.json"]
    assert abs(modified(f"{folder}/one.json", options) - datetime.now(UTC)) < timedelta(minutes=5)  # type: ignore[operator]
    assert modified(f"{folder}/two.json", options) is None
    remove(f"{folder}/one.json", options)
    remove(f"{folder}/one.json", options)
    assert list_names(folder, options) == []
    remove_folder(folder, options)
    remove_folder(folder, options)


def test_snapshots_are_seen_as_soon_as_they_are_there(hook: PaimonHook, warehouse: str) -> None:
    document = {"schemaId": 0, "commitUser": "u", "commitKind": "APPEND", "timeMillis": 1}
    for number in (1, 2):
        text = json.dumps({"id": number, **document})
        place = f"{warehouse}/shop.db/orders/snapshot/snapshot-{number}"
        write_text(place, text, hook.storage_options())

        assert hook._snapshots_of(TARGET).latest().snapshot_id == number


def test_the_hook_reads_tables(hook: PaimonHook, warehouse: str, tmp_path: Path) -> None:
    table = TableFiles(tmp_path, "read").create()
    for day in range(1, 4):
        table.add({f"2026-01-{day:02}": day})
    table.tag("daily", 2)
    store = fsspec.filesystem("hdfs", **hook.storage_options())
    store.put(f"{table.folder}/", f"{warehouse}/shop.db/read/", recursive=True)

    assert hook.latest_snapshot("shop.read").snapshot_id == 3
    (partition,) = hook.partitions("shop.read", {"day": "2026-01-02"})
    assert (partition.rows, partition.files) == (2, 1)
    assert hook.row_count("shop.read") == 6
    assert [tag.name for tag in hook.tags("shop.read")] == ["daily"]
    assert hook.test_connection() == (True, f"{warehouse} can be read. It has 1 database: shop.")


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch, warehouse: str) -> None:
    missing = f"{warehouse}/no-such-folder"
    hook = lake(monkeypatch, missing)

    with pytest.raises(JobError) as raised:
        require_folder(missing, hook.storage_options())

    assert raised.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert missing in raised.value.message


def test_a_folder_that_may_not_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, hdfs_beside_airflow: Hdfs, warehouse: str
) -> None:
    inside = warehouse.removeprefix(hdfs_beside_airflow.uri)
    hdfs_beside_airflow.client().set_permission(inside.rpartition("/")[0], 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    options = {**lake(monkeypatch, warehouse).storage_options(), "skip_instance_cache": True}

    with pytest.raises(JobError) as raised:
        require_folder(warehouse, options)

    assert raised.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert "HADOOP_USER_NAME" in raised.value.remedy


def test_a_name_node_that_does_not_answer_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = "hdfs://127.0.0.1:9/warehouse"

    with pytest.raises(JobError) as raised:
        require_folder(warehouse, lake(monkeypatch, warehouse).storage_options())

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE


def test_a_missing_client_is_named(
    monkeypatch: pytest.MonkeyPatch, warehouse: str, hook: PaimonHook
) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda scheme: HadoopFileSystem)

    with pytest.raises(RequestError, match="hdfs-native") as raised:
        require_folder(warehouse, hook.storage_options())

    assert "executors" in raised.value.remedy
