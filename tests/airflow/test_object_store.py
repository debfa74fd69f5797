"""What Airflow reads and writes of a warehouse on an object store, with s3fs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.storage.files import list_names, modified, read_text, remove, write_text
from airflow_provider_merge.storage.warehouse import require_bucket
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError
from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, connection
from tests.support.gateway import gateway_program_or_skip, serving
from tests.support.paimon_metadata import TableFiles
from tests.support.paimon_rows import TableRows, without

pytestmark = pytest.mark.slow  # the first run builds the server

TARGET = TableName("shop", "orders")
KEY = "AKIATESTS"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = gateway_program_or_skip()
    with serving(program, tmp_path_factory.mktemp("gateway"), KEY, PASSWORD) as url:
        client = {"endpoint_url": url}
        fsspec.filesystem("s3", key=KEY, secret=PASSWORD, client_kwargs=client).mkdir("lake")
        yield url


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> Callable[..., PaimonHook]:
    def make(login: str = KEY, password: str = PASSWORD, **changes: Any) -> PaimonHook:
        extra = {"warehouse": "s3://lake/wh", "endpoint": endpoint, **changes}
        connection(
            monkeypatch, "lake", conn_type="paimon", login=login, password=password, extra=extra
        )
        return PaimonHook("lake")

    return make


def test_small_files_are_written_listed_read_and_removed(hook: Callable[..., PaimonHook]) -> None:
    options = hook().storage_options()
    place = "s3://lake/wh/_operations/one.json"
    assert read_text(place, options) is None
    assert list_names("s3://lake/wh/_operations", options) == []

    write_text(place, "ü", options)

    assert read_text(place, options) == "ü"
    assert list_names("s3://lake/wh/_operations", options) == ["one.json"]
    assert abs(modified(place, options) - datetime.now(UTC)) < timedelta(minutes=5)  # type: ignore[operator]
    assert modified(f"{place}.2", options) is None
    remove(place, options)
    remove(place, options)
    assert list_names("s3://lake/wh/_operations", options) == []


def test_snapshots_are_seen_as_soon_as_they_are_there(hook: Callable[..., PaimonHook]) -> None:
    lake = hook()
    options = lake.storage_options()
    document = {"schemaId": 0, "commitUser": "u", "commitKind": "APPEND", "timeMillis": 1}
    for number in (1, 2):
        text = json.dumps({"id": number, **document})
        folder = "s3://lake/wh/shop.db/orders/snapshot"
        write_text(f"{folder}/snapshot-{number}", text, options)

        assert lake._snapshots_of(TARGET).latest().snapshot_id == number


def test_rows_are_sampled(
    hook: Callable[..., PaimonHook],
    users: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__MERGE__UI_SAMPLES", "lake")
    table = TableRows(tmp_path, "sampled", more_columns={"city": "STRING"}).create()
    old, new = (table.file("2026-01-31", {"id": [1], "city": [name]}) for name in ("Oslo", "Rome"))
    table.commit([old])
    table.commit([without(old), new])
    store = fsspec.filesystem("s3", **hook().storage_options())
    store.put(f"{table.folder}/", "lake/wh/shop.db/sampled/", recursive=True)

    asked = {"connection": "lake", "table": "sampled", "before": 1, "after": 2}
    (part,) = users["ADMIN"].told("sample", **asked)["partitions"]

    assert part["removed"] == [["1", "2026-01-31", "Oslo"]]
    assert part["added"] == [["1", "2026-01-31", "Rome"]]


def test_the_hook_reads_tables(hook: Callable[..., PaimonHook], tmp_path: Path) -> None:
    table = TableFiles(tmp_path, "read").create()
    for day in range(1, 13):
        table.add({f"2026-01-{day:02}": day})
    table.tag("daily", 11)
    lake = hook()
    store = fsspec.filesystem("s3", **lake.storage_options())
    store.put(f"{table.folder}/", "lake/wh/shop.db/read/", recursive=True)

    assert lake.latest_snapshot("shop.read").snapshot_id == 12
    (partition,) = lake.partitions("shop.read", {"day": "2026-01-07"})
    assert (partition.rows, partition.files) == (7, 1)
    assert lake.row_count("shop.read") == sum(range(1, 13))
    assert [(tag.name, tag.snapshot.snapshot_id) for tag in lake.tags("shop.read")] == [
        ("daily", 11)
    ]
    assert lake.test_connection() == (True, "s3://lake/wh can be read. It has 1 database: shop.")
    with pytest.raises(JobError) as raised:
        hook(password="planted-2").latest_snapshot("shop.read")
    assert raised.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED


def test_a_bucket_that_is_there(hook: Callable[..., PaimonHook]) -> None:
    require_bucket("s3://lake/not/yet/there", hook().storage_options())


@pytest.mark.parametrize(
    ("changes", "warehouse", "code", "field"),
    [
        ({}, "s3://no-such-bucket/wh", ErrorCode.WAREHOUSE_NOT_FOUND, "warehouse"),
        ({"login": PASSWORD}, "s3://lake/wh", ErrorCode.WAREHOUSE_ACCESS_DENIED, "login"),
        ({"password": "planted-2"}, "s3://lake/wh", ErrorCode.WAREHOUSE_ACCESS_DENIED, "password"),
        (
            {"endpoint": "http://127.0.0.1:9"},
            "s3://lake/wh",
            ErrorCode.STORAGE_UNAVAILABLE,
            "endpoint",
        ),
    ],
    ids=["bucket", "access key", "secret key", "endpoint"],
)
def test_what_is_wrong_is_named(
    hook: Callable[..., PaimonHook],
    changes: dict[str, str],
    warehouse: str,
    code: ErrorCode,
    field: str,
) -> None:
    options = hook(**changes).storage_options()

    with pytest.raises(JobError) as raised:
        require_bucket(warehouse, options)

    assert raised.value.code is code
    assert field in raised.value.remedy
    assert PASSWORD not in str(raised.value)
    assert "planted-2" not in str(raised.value)


@pytest.mark.usefixtures("airflow_db")
def test_a_task_fails_before_spark_starts(
    hook: Callable[..., PaimonHook],
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hook(password="planted-2")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    body = """
DeleteFromOperator(
    task_id="delete", target="shop.orders", where="true", catalog_conn_id="lake", retries=1
)
"""
    run = dag_file(body).run()

    (ti,) = run.get_task_instances()
    assert (ti.state, ti.try_number) == ("failed", 1), "a final error is not retried"
    assert submitter.jobs == []
    log = capsys.readouterr().out
    assert "WAREHOUSE_ACCESS_DENIED" in log
    assert "planted-2" not in log
