"""Snapshots expire on an object store: in bulk, and told when the store refuses.

A run takes the quarter of the requests that can fail whose turn it is (``MERGE_TESTS_TURN``), and
of the two servers one for each test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    Kept,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from spark_jobs.storage import removal
from spark_jobs.storage.removal import BulkRemover
from tests.connectors.paimon.branching import from_begin_to_end
from tests.support.paimon_tables import NAME, begin, create, overwrite, read, snapshot_ids
from tests.support.proxy import Plan, Proxy, proxy_before
from tests.support.stores import ObjectStore
from tests.support.turns import has_turn

pytestmark = pytest.mark.by_turns(2)

EXPIRE = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")


@dataclass(frozen=True)
class Warehouse:
    """A table on a server whose one row was replaced five times."""

    server: ObjectStore
    location: str
    connector: Connector

    def copy(self) -> Warehouse:
        """The same in a bucket of its own."""
        bucket, _, folder = self.location.removeprefix("s3://").partition("/")
        made, client = self.server.new_bucket(), self.server.client()
        for key in self.server.keys(bucket):
            client.copy_object(Bucket=made, Key=key, CopySource={"Bucket": bucket, "Key": key})
        location = f"s3://{made}/{folder}"
        catalog = self.server.catalog(location)
        return Warehouse(self.server, location, open_connector(catalog, self.server.credentials))

    def through(self, proxy: Proxy) -> ConnectorMaintenance:
        """Care of it by way of a proxy."""
        server = replace(self.server, endpoint=proxy.endpoint)
        care = open_connector(server.catalog(self.location), server.credentials).maintenance
        assert care is not None
        return care

    def rows_at(self, option: str, value: str) -> list[dict[str, Any]]:
        """The rows of a snapshot or tag, as pypaimon reads them."""
        table = self.connector.metadata.load_table(NAME).native.table.copy({option: value})
        builder = table.new_read_builder()
        rows: list[dict[str, Any]] = (
            builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        )
        return rows

    @property
    def care(self) -> ConnectorMaintenance:
        assert self.connector.maintenance is not None
        return self.connector.maintenance

    def keys(self, part: str = "") -> list[str]:
        bucket, _, folder = self.location.removeprefix("s3://").partition("/")
        keys = self.server.keys(bucket, f"{folder}/shop.db/orders/")
        return [key for key in keys if part in key]


def new_warehouse(server: ObjectStore) -> Warehouse:
    catalog = server.new_catalog()
    connector = open_connector(catalog, server.credentials)
    create(connector, {"id": "int", "k": "string"}, ["k"])
    for number in range(1, 6):
        overwrite(connector, number)
    return Warehouse(server, catalog.warehouse, connector)


@pytest.fixture
def warehouse(each_store: ObjectStore) -> Warehouse:
    return new_warehouse(each_store)


def test_snapshots_expire(warehouse: Warehouse) -> None:
    warehouse.care.create_tag(NAME, CreateTagSpec("second", 2, "1 d"))

    report = warehouse.care.expire_snapshots(NAME, EXPIRE, dry_run=False)

    assert (report.snapshots, report.data_files) == (4, 3)
    assert snapshot_ids(warehouse.connector) == [5]
    assert read(warehouse.connector) == [{"id": 5, "k": "x"}]
    assert len(warehouse.keys(".parquet")) == 2
    assert not warehouse.keys("/removal/")
    deleted = warehouse.care.delete_tag(NAME, DeleteTagSpec("second"), dry_run=False)
    assert deleted.data_files == 1
    assert len(warehouse.keys(".parquet")) == 1


def test_a_dropped_table_leaves_nothing(warehouse: Warehouse) -> None:
    connector = warehouse.connector
    warehouse.care.create_tag(NAME, CreateTagSpec("second", 2))
    create(connector, {"id": "int"}, name=replace(NAME, table="orders_2"))
    assert connector.alterations is not None

    assert connector.alterations.drop_table(NAME, DropTableSpec())

    assert warehouse.keys() == []
    with pytest.raises(JobError) as caught:
        connector.metadata.load_table(NAME)
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
    assert connector.metadata.load_table(replace(NAME, table="orders_2"))


def test_the_base_of_a_running_merge_stays_readable(warehouse: Warehouse) -> None:
    connector, files = warehouse.connector, warehouse.server.filesystem()
    base = connector.metadata.load_table(NAME)
    begin(connector, base, "running")
    overwrite(connector, 6)
    overwrite(connector, 7)

    report = warehouse.care.expire_snapshots(NAME, EXPIRE, dry_run=False)

    assert report.kept == (Kept("operation running", snapshots=2),)
    assert snapshot_ids(connector) == [5, 6, 7]
    (file,) = connector.metadata.plan_files(base)
    path = file.path.removeprefix("s3://")
    rows = pq.read_table(path, filesystem=files, partitioning=None).to_pylist()
    assert rows == [{"id": 5, "k": "x"}]
    connector.writes.release_guard(base, "running")
    warehouse.care.expire_snapshots(NAME, EXPIRE, dry_run=False)
    assert snapshot_ids(connector) == [7]
    assert len(warehouse.keys(".parquet")) == 1


def names(warehouse: Warehouse) -> set[str]:
    """Keys within the table."""
    keys = warehouse.keys()
    return {key.partition("/shop.db/")[2] for key in keys}


def test_a_removal_that_fails_at_any_request_is_finished_by_the_next_one(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if what goes took several requests each: snapshots, data files, manifests.
    monkeypatch.setattr(removal, "_BULK", 2)
    table = new_warehouse(store)
    table.care.create_tag(NAME, CreateTagSpec("second", 2))
    undisturbed = table.copy()
    with proxy_before(store.endpoint) as proxy:
        removals = proxy.add("POST", "delete", "503", times=0)
        undisturbed.through(proxy).expire_snapshots(NAME, EXPIRE, dry_run=False)
        end = names(undisturbed)
        assert removals.seen >= 7

        for number in (each for each in range(removals.seen) if has_turn(each, 4)):
            proxy.plans[:] = [Plan("POST", "delete", "503", times=1000, after=number)]
            copy = table.copy()
            with pytest.raises(JobError) as raised:
                copy.through(proxy).expire_snapshots(NAME, EXPIRE, dry_run=False)

            assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
            assert names(copy) - end
            assert copy.rows_at("scan.tag-name", "second") == [{"id": 2, "k": "x"}]
            for left in snapshot_ids(copy.connector):
                assert copy.rows_at("scan.snapshot-id", str(left)) == [{"id": left, "k": "x"}]
            copy.care.expire_snapshots(NAME, EXPIRE, dry_run=False)
            assert names(copy) == end, number


def test_a_tag_is_made_once(warehouse: Warehouse) -> None:
    warehouse.care.create_tag(NAME, CreateTagSpec("t", 2))

    with pytest.raises(JobError) as raised:
        warehouse.care.create_tag(NAME, CreateTagSpec("t", 3))

    assert raised.value.code is ErrorCode.TAG_EXISTS


def test_a_branch_from_begin_to_end(warehouse: Warehouse) -> None:
    from_begin_to_end(warehouse.connector)


@pytest.mark.parametrize("way", ["driver", "spark"])
def test_rollback_then_orphans(
    warehouse: Warehouse, way: str, request: pytest.FixtureRequest
) -> None:
    session = request.getfixturevalue("spark") if way == "spark" else None
    spec = RollbackSpec(snapshot_id=2, force=True)
    warehouse.care.roll_back(NAME, spec, dag_id="", dry_run=False)
    assert read(warehouse.connector) == [{"id": 2, "k": "x"}]
    orphans = RemoveOrphanFilesSpec()
    young = warehouse.care.remove_orphan_files(NAME, orphans, dry_run=False, spark=session)
    assert not young.changes

    # Objects cannot be made older: the clock goes forward instead.
    care: Any = warehouse.care
    later = datetime.now(UTC) + timedelta(days=2)
    tomorrow = PaimonMaintenance(care._metadata, care._storage, lambda: later)
    report = tomorrow.remove_orphan_files(NAME, orphans, dry_run=False, spark=session)

    assert report.data_files == 3
    assert len(warehouse.keys(".parquet")) == 2
    assert read(warehouse.connector) == [{"id": 2, "k": "x"}]


def test_a_store_that_fails_ends_it_before_anything_goes(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    rollback = RollbackSpec(snapshot_id=2, force=True)
    warehouse.care.roll_back(NAME, rollback, dag_id="", dry_run=False)
    before = warehouse.keys()
    manifests = [key for key in warehouse.keys("/manifest-") if "manifest-list" not in key]
    with proxy_before(warehouse.server.endpoint) as proxy:
        through = replace(warehouse.server, endpoint=proxy.endpoint)
        connector = open_connector(through.catalog(warehouse.location), through.credentials)
        care: Any = connector.maintenance
        later = datetime.now(UTC) + timedelta(days=2)
        tomorrow = PaimonMaintenance(care._metadata, care._storage, lambda: later)
        names = [key.rpartition("/")[2] for key in manifests]
        plans = [proxy.add("GET", name, "503", times=1000) for name in names]

        with pytest.raises(Exception) as raised:  # noqa: PT011 - the engine translates it
            tomorrow.remove_orphan_files(NAME, RemoveOrphanFilesSpec(), dry_run=False, spark=spark)

    assert sum(plan.seen for plan in plans) > 0
    assert translated(raised.value).code is ErrorCode.STORAGE_UNAVAILABLE
    assert warehouse.keys() == before


@dataclass
class _Refusing:
    """Amazon's client, of a store that lets some objects not be removed."""

    refused: Sequence[str]
    requests: list[list[str]] = field(default_factory=list)

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        keys = [each["Key"] for each in Delete["Objects"]]
        self.requests.append(keys)
        return {"Errors": [{"Key": k, "Code": "AccessDenied"} for k in keys if k in self.refused]}


def test_a_thousand_in_a_request() -> None:
    client = _Refusing([])

    BulkRemover(client).remove([f"bucket/key-{i}" for i in range(2500)])

    assert sorted(map(len, client.requests)) == [500, 1000, 1000]


def test_a_refusal_is_told() -> None:
    with pytest.raises(JobError) as raised:
        BulkRemover(_Refusing(["b"])).remove(["bucket/a", "bucket/b"])

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "b: AccessDenied" in raised.value.message


def test_what_has_an_order_goes_one_by_one() -> None:
    client = _Refusing(["b"])

    with pytest.raises(JobError):
        BulkRemover(client).remove_in_order(["bucket/a", "bucket/b", "bucket/c"])

    assert client.requests == [["a"], ["b"]]
