"""REST catalogs of Iceberg's: Iceberg's own server, and servers that answer anything."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.metadata.iceberg import bounded_http
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError
from tests.airflow.support import PASSWORD, connection
from tests.airflow.test_iceberg_tables import DAY
from tests.judge.iceberg_server import CLIENT, IcebergRest, iceberg_rest_beside_airflow
from tests.support.iceberg_tables import IcebergTable
from tests.support.small_server import serving

__all__ = ["iceberg_rest_beside_airflow"]
TABLE = "shop.orders"


@pytest.fixture
def server(iceberg_rest_beside_airflow: IcebergRest) -> IcebergRest:
    return iceberg_rest_beside_airflow


@pytest.fixture
def orders(server: IcebergRest) -> Iterator[IcebergTable]:
    with RestCatalog("tests", **server.properties) as catalog:
        table = IcebergTable.create(catalog, ("a", "b", f"t{time.monotonic_ns()}"))
        table.append(DAY, "Oslo", rows=5)
        yield table


def name_of(table: IcebergTable) -> str:
    return f"`a.b`.{table.identifier[-1]}"


@pytest.mark.slow
@pytest.mark.parametrize("is_client", [True, False])
def test_iceberg_s_own_server(
    server: IcebergRest,
    orders: IcebergTable,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_client: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    fields: dict[str, Any] = {"host": server.uri, "conn_type": "iceberg"}
    if is_client:
        fields |= {"login": CLIENT, "password": server.secret}
    else:
        fields["extra"] = {"token": server.secret}
    connection(monkeypatch, "lake", **fields)
    hook = IcebergHook("lake")
    latest = hook.latest_snapshot(name_of(orders))
    assert latest is not None
    assert latest.snapshot_id == orders.head
    assert hook.row_count(name_of(orders)) == 5
    orders.append(DAY, "Rome", rows=2)
    # Through the same hook: what it keeps is the connection, not the table.
    assert hook.row_count(name_of(orders)) == 7
    assert hook.test_connection() == (
        True,
        (
            f"{server.uri} answers. Its namespaces: a. workspace is empty, which every operator "
            "needs, for results and temporary files of its job; sensors and pages do not."
        ),
    )
    with pytest.raises(CatalogError) as error:
        hook.table("`a.b`.none")
    assert error.value.code is ErrorCode.TABLE_NOT_FOUND
    assert server.secret not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"login": CLIENT, "password": PASSWORD}, {}])
def test_who_is_not_let_in(
    server: IcebergRest,
    orders: IcebergTable,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fields: dict[str, str],
) -> None:
    caplog.set_level(logging.DEBUG)
    extra = {} if fields else {"token": PASSWORD}
    connection(monkeypatch, "lake", conn_type="iceberg", host=server.uri, extra=extra, **fields)
    with pytest.raises(CatalogError) as error:
        IcebergHook("lake").table(name_of(orders))
    assert error.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED
    assert PASSWORD not in str(error.value) + caplog.text


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a server answers, by path; the connection ``lake`` is to it."""
    found: dict[str, Any] = {"/v1/config": (200, {"defaults": {}, "overrides": {}})}

    monkeypatch.setattr(bounded_http, "SECONDS", 0.5)
    monkeypatch.setattr(bounded_http, "MAX_ANSWER", 10_000)
    with serving(lambda path: found.get(path, (404, {}))) as host:
        found["host"] = host
        connection(monkeypatch, "lake", conn_type="iceberg", host=host, extra={"token": PASSWORD})
        yield found


LOAD = "/v1/namespaces/shop/tables/orders"


def sleeps(handler: Any) -> None:
    time.sleep(1)


def drips(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


@pytest.mark.parametrize("path", ["/v1/config", LOAD])
@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ((500, PASSWORD.encode()), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((503, {"error": {}}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((429, {}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((419, {}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((302, {}), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((200, b" " * 10_001), InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        (sleeps, InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        (drips, InternalError, ErrorCode.STORAGE_UNAVAILABLE),
        ((401, {}), CatalogError, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        ((403, {}), CatalogError, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        ((200, b"no json"), CatalogError, ErrorCode.METADATA_UNREADABLE),
        ((200, []), CatalogError, ErrorCode.METADATA_UNREADABLE),
    ],
)
def test_what_is_no_answer(
    answers: dict[str, Any], path: str, answer: Any, kind: type[JobError], code: ErrorCode
) -> None:
    answers[path] = answer
    answers["/elsewhere"] = (200, {})
    with pytest.raises(kind) as error:
        IcebergHook("lake").table(TABLE)
    assert error.value.code is code
    assert PASSWORD not in str(error.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "lake", conn_type="iceberg", host="http://127.0.0.1:9")
    with pytest.raises(InternalError, match=r"127\.0\.0\.1:9 did not answer as it should"):
        IcebergHook("lake").table(TABLE)


METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://lake/t",
    "last-sequence-number": 0,
    "last-updated-ms": 0,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
        }
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
}


def test_a_server_hands_out_keys_and_a_table_does_not_say_where_they_go(
    answers: dict[str, Any],
) -> None:
    own = {"s3.endpoint": "http://evil", "py-io-impl": "os.system", "s3.access-key-id": "own"}
    answers[LOAD] = (
        200,
        {
            "metadata-location": "s3://lake/t/metadata/1.metadata.json",
            "metadata": {**METADATA, "properties": own},
            "config": {"s3.access-key-id": "handed", "s3.secret-access-key": PASSWORD},
        },
    )
    files = IcebergHook("lake").table(TABLE).loaded.files
    assert "s3.endpoint" not in files.properties
    assert files.properties["s3.access-key-id"] == "handed"
    assert files.properties["s3.secret-access-key"] == PASSWORD
    assert PASSWORD not in repr(IcebergHook("lake").table(TABLE))

    places = {"s3://lake": "of the bucket", "s3://lake/t": "of the table", "s3://other": "other"}
    answers[LOAD][1]["storage-credentials"] = [
        {"prefix": place, "config": {"s3.access-key-id": key}} for place, key in places.items()
    ]
    files = IcebergHook("lake").table(TABLE).loaded.files
    assert files.properties["s3.access-key-id"] == "of the table"


def test_a_key_that_expired_is_no_reason_to_give_up(
    answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def s3(handler: Any) -> None:
        """There is a file, but not for this key."""
        is_head = handler.command == "HEAD"
        body = b"" if is_head else b"<Error><Code>ExpiredToken</Code></Error>"
        handler.send_response(200 if is_head else 400)
        handler.send_header("Content-Length", "100" if is_head else str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1,
        "manifest-list": "s3://lake/t/list.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    host = answers["host"]
    keys = {"s3.access-key-id": "AK", "s3.secret-access-key": PASSWORD, "s3.session-token": "x"}
    answers["/lake/t/list.avro"] = s3
    answers[LOAD] = (
        200,
        {
            "metadata-location": "s3://lake/t/metadata/1.metadata.json",
            "metadata": {**METADATA, "snapshots": [snapshot], "current-snapshot-id": 7},
            "config": {**keys, "s3.endpoint": host, "s3.region": "us-east-1"},
        },
    )
    with pytest.raises(InternalError, match="expired") as error:
        IcebergHook("lake").row_count(TABLE)
    assert error.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert PASSWORD not in str(error.value)


@pytest.mark.parametrize(
    "sent",
    [
        {"auth": {"type": "custom", "impl": "os.system", "custom": {"command": "true"}}},
        {"py-io-impl": "os.system"},
        {"ssl": {"cabundle": "/no/such/file"}},
    ],
)
def test_a_server_names_no_class(answers: dict[str, Any], sent: dict[str, Any]) -> None:
    answers["/v1/config"] = (200, {"defaults": {}, "overrides": sent})
    answers[LOAD] = (200, {"metadata-location": "/t/1.metadata.json", "metadata": METADATA})
    # pyiceberg itself refuses what is not text; what it takes has no effect.
    try:
        table = IcebergHook("lake").table(TABLE)
    except CatalogError as error:
        assert error.code is ErrorCode.METADATA_UNREADABLE  # noqa: PT017
    else:
        assert table.latest() is None


def test_a_catalog_that_lets_nobody_in_is_final_where_the_driver_would_ask_it_with_the_same_key(
    answers: dict[str, Any],
) -> None:
    answers[LOAD] = (403, {})
    wanted = TableName("shop", "orders"), DeleteSpec("true"), ()

    with pytest.raises(CatalogError) as error:
        MetadataCheck(IcebergHook("lake"), shares_files=True).require_valid(*wanted)
    assert error.value.code is ErrorCode.WAREHOUSE_ACCESS_DENIED

    MetadataCheck(IcebergHook("lake"), shares_files=False).require_valid(*wanted)


def test_a_check_loads_each_table_once(answers: dict[str, Any]) -> None:
    loads: list[str] = []

    def load(handler: Any) -> None:
        loads.append(handler.path)
        body = json.dumps({"metadata-location": "/t/1.metadata.json", "metadata": METADATA})
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    answers[LOAD] = load
    check = MetadataCheck(IcebergHook("lake"), shares_files=True)
    orders = TableName("shop", "orders")
    source = TableSource("s", orders)
    for statement in (DeleteSpec("id = 1"), DeleteSpec("id = 2")):
        check.require_valid(orders, statement, [source], widens=True)

    assert len(loads) == 1
