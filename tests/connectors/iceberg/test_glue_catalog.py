"""Statements and commits through AWS Glue, which moto plays; what Glue may answer."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.formats.iceberg import catalogs
from spark_jobs.storage import s3
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.glue_tables import GlueTables, before_commits
from tests.connectors.iceberg.ids_here import ids_here
from tests.connectors.iceberg.lost_requests import assert_one_snapshot, assert_retry_knows
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.tables import statement_done
from tests.judge.glue_server import glue
from tests.support.proxy import Fault, Proxy, proxy_before
from tests.support.small_server import Answer, serving
from tests.support.stores import ObjectStore, moto

__all__ = ["glue", "moto"]

_COMMITS = "UpdateTable"
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def tables(glue: ObjectStore, tmp_path: Path) -> Iterator[GlueTables]:
    """A file with the ids 0 to 4."""
    made = GlueTables(glue, f"file://{tmp_path}")
    catalog = made.library()
    catalog.create_namespace("db")
    table = catalog.create_table(("db", "t"), SCHEMA, properties={"format-version": "2"})
    rows = [{"id": each, "s": "x"} for each in range(5)]
    table.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    yield made
    made.drop_all()


@pytest.fixture
def proxy(tables: GlueTables) -> Iterator[Proxy]:
    with proxy_before(tables.store.endpoint) as running:
        yield running


@pytest.mark.slow
def test_statements_on_a_bucket(spark: SparkSession, glue: ObjectStore) -> None:
    lake = GlueTables(glue, f"s3://{glue.new_bucket()}/lake")
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING"))
    spec = CreateTableSpec(columns, ("s",), table_options={"write.merge.mode": "merge-on-read"})
    name = TableName("shop", "orders")
    assert lake.open().metadata.create_table(name, spec)
    assert not lake.open().metadata.create_table(name, spec)

    def done(text: str, source: str) -> None:
        statement_done(spark, lake.spec(), text, source, lake.keys)

    done("INSERT INTO shop.orders SELECT * FROM s", "SELECT id, 'a' s FROM range(4)")
    done(
        "MERGE INTO shop.orders t USING s ON t.id = s.id WHEN MATCHED AND s.s = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "VALUES (1L, 'd'), (2L, 'b'), (9L, 'b') AS v(id, s)",
    )
    table = lake.library().load_table(("shop", "orders"))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    overwrite = "INSERT OVERWRITE {} PARTITION (s = 'b') SELECT id FROM s"
    done(overwrite.format("shop.orders"), "SELECT 7L id")
    done(overwrite.format("shop.`orders$branch_audit`"), "SELECT 8L id")

    table = lake.library().load_table(("shop", "orders"))
    for branch, ids in (("main", [0, 3, 7]), ("audit", [0, 3, 8])):
        rows = table.scan(snapshot_id=table.refs()[branch].snapshot_id).to_arrow().to_pylist()
        assert sorted((each["id"], each["s"]) for each in rows) == [
            (ids[0], "a"),
            (ids[1], "a"),
            (ids[2], "b"),
        ]
    assert len(table.snapshots()) == 4
    assert glue.secret_key not in str(table.metadata)


def test_a_table_of_version_3(tables: GlueTables) -> None:
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING"))
    options = {"format-version": "3", "write.merge.mode": "merge-on-read"}
    name, connector = TableName("db", "new"), tables.open()
    spec = CreateTableSpec(columns, table_options=options)
    assert connector.metadata.create_table(name, spec)
    DirectWrite(connector, name=name).insert(*({"id": n, "s": "x"} for n in range(5))).publish()

    DirectWrite(connector, name=name).delete(0, 1).publish()
    DirectWrite(connector, name=name, rewrite_share=0.0).update(0, 2, "new").publish()

    assert ids_here(connector, name) == {0: 0, 2: 2, 3: 3, 4: 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    ["lose the answer", "twice", "late", "429", "503"],
)
def test_one_snapshot_whatever_happens_to_the_request(
    tables: GlueTables, proxy: Proxy, fault: Fault
) -> None:
    assert_one_snapshot(tables, proxy, _COMMITS, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["late", "503"])
def test_a_retry_finds_out_what_became_of_requests_without_any_answer(
    tables: GlueTables, tmp_path: Path, proxy: Proxy, fault: Fault
) -> None:
    assert_retry_knows(tables, tmp_path, proxy, _COMMITS, fault)


def test_a_commit_that_another_one_overtakes_is_made_after_it(tables: GlueTables) -> None:
    connector, other = tables.open(), tables.open()
    write = DirectWrite(connector, isolation="snapshot").delete(0, 1).insert({"id": 20, "s": "a"})
    asked = []

    def overtake(request: Any) -> None:
        asked.append(request)
        if len(asked) == 1:
            DirectWrite(other, reads=False).insert({"id": 30, "s": "b"}).publish()

    before_commits(connector, overtake)

    committed = write.publish()

    assert len(asked) == 2
    assert ids_of(tables) == [0, 2, 3, 4, 20, 30]
    table = tables.library().load_table(("db", "t"))
    assert table.current_snapshot().snapshot_id == committed.snapshot_id
    assert len(table.snapshots()) == 3


@pytest.mark.parametrize("code", ["ExpiredTokenException", "AccessDeniedException"])
def test_a_commit_that_is_refused_leaves_nothing(
    tables: GlueTables, tmp_path: Path, code: str
) -> None:
    connector = tables.open()
    write = DirectWrite(connector).insert({"id": 20, "s": "new"})
    manifests = set(tmp_path.rglob("*.avro"))
    before_commits(connector, lambda _: _refusal(code))

    with pytest.raises(JobError) as caught:
        write.publish()
    write.abort()

    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert set(tmp_path.rglob("*.avro")) == manifests
    assert ids_of(tables) == [0, 1, 2, 3, 4]


def _refusal(code: str) -> Any:
    from botocore.awsrequest import AWSResponse
    from urllib3 import HTTPResponse

    body = io.BytesIO(json.dumps({"__type": code}).encode())
    return AWSResponse("", 400, {}, HTTPResponse(body, preload_content=False))


def test_reading_waits_for_a_busy_service(
    tables: GlueTables, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_PAUSES", (0.0, 0.0))
    plan = proxy.add("POST", "GetTable", "429", times=2)

    assert tables.open(proxy.endpoint).metadata.load_table(NAME)

    assert plan.seen == 3


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"__type": "ExpiredTokenException"}, ErrorCode.STORAGE_UNAVAILABLE),
        (400, {"__type": "ThrottlingException"}, ErrorCode.STORAGE_UNAVAILABLE),
        (500, {"__type": "InternalServiceException"}, ErrorCode.STORAGE_UNAVAILABLE),
        (302, {}, ErrorCode.STORAGE_UNAVAILABLE),
        (200, None, ErrorCode.METADATA_UNREADABLE),
        (400, {"__type": "UnrecognizedClientException"}, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        (400, {"__type": "AccessDeniedException"}, ErrorCode.WAREHOUSE_ACCESS_DENIED),
        (403, {}, ErrorCode.WAREHOUSE_ACCESS_DENIED),
    ],
)
def test_what_is_no_table(
    glue: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: dict[str, str] | None,
    code: ErrorCode,
) -> None:
    monkeypatch.setattr(s3, "_PAUSES", ())

    def answer_to(_: str) -> Answer:
        return status, b"no json" if body is None else {**body, "message": glue.secret_key}

    with serving(answer_to) as uri, pytest.raises(JobError) as caught:
        GlueTables(glue, f"file://{tmp_path}").open(uri).metadata.load_table(NAME)

    assert caught.value.code is code
    assert glue.secret_key not in str(caught.value)


def test_a_service_that_does_not_answer(
    glue: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "ANSWER_SECONDS", 0.3)
    is_over = threading.Event()

    def answer_to(_: str) -> Answer:
        is_over.wait(60)
        return 500, b""

    with serving(answer_to) as uri:
        with pytest.raises(JobError, match="ReadTimeoutError") as caught:
            GlueTables(glue, f"file://{tmp_path}").open(uri).metadata.load_table(NAME)
        is_over.set()

    assert caught.value.code is ErrorCode.STORAGE_UNAVAILABLE


def test_without_the_client_of_amazon(
    glue: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogs._glue_class.cache_clear()
    monkeypatch.delitem(sys.modules, "pyiceberg.catalog.glue", raising=False)
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(JobError, match="boto3 in the driver's environment") as caught:
        GlueTables(glue, f"file://{tmp_path}").open().metadata.load_table(NAME)

    assert caught.value.code is ErrorCode.LIBRARY_MISSING


def test_what_is_missing(tables: GlueTables, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tables.open().metadata

    def problem(ask: Callable[[], Any]) -> str:
        with pytest.raises(JobError) as caught:
            ask()
        return f"{caught.value.code.name}: {caught.value.message}"

    def load(*name: str) -> str:
        return problem(lambda: catalog.load_table(TableName(*name)))

    assert load("db", "none").startswith("TABLE_NOT_FOUND")
    assert load("none", "t").startswith("TABLE_NOT_FOUND")
    assert "several levels" in load("a.b", "t")
    hive = {"Name": "old", "Parameters": {"EXTERNAL": "TRUE"}}
    tables.library().glue.create_table(DatabaseName="db", TableInput=hive)
    assert load("db", "old") == "TABLE_NOT_FOUND: db.old is in AWS Glue, but is no Iceberg table."
    tables.library().glue.delete_table(DatabaseName="db", Name="old")
    spec = CreateTableSpec((ColumnSpec("id", "BIGINT"),), ())
    nowhere = tables.open(warehouse="").metadata
    assert "warehouse: is empty" in problem(
        lambda: nowhere.create_table(TableName("db", "new"), spec)
    )

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    without_key = open_connector(tables.spec(), {}).metadata
    assert "There is no key" in problem(lambda: without_key.load_table(NAME))
    without_region = tables.open(**{"client.region": ""}).metadata
    assert "(NoRegionError)" in problem(lambda: without_region.load_table(NAME))
