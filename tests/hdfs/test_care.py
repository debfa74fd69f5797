"""Snapshots expire, and orphan files are found, in HDFS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.errors import ErrorCode, JobError
from tests.connectors.paimon.branching import from_begin_to_end
from tests.judge.hdfs_server import Hdfs
from tests.support.paimon_tables import NAME, create, overwrite, read, snapshot_ids

EXPIRE = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")


class Warehouse:
    """A table in HDFS whose one row was replaced five times."""

    def __init__(self, hdfs: Hdfs) -> None:
        catalog = hdfs.new_catalog()
        self.connector = open_connector(catalog, {})
        self._client = hdfs.client()
        self._table = f"{catalog.warehouse.removeprefix(hdfs.uri)}/shop.db/orders"
        create(self.connector, {"id": "int", "k": "string"}, ["k"])
        for number in range(1, 6):
            overwrite(self.connector, number)

    @property
    def care(self) -> Any:
        return self.connector.maintenance

    def files(self, part: str) -> list[str]:
        found = self._client.list_status(self._table, True)
        return [each.path for each in found if part in each.path and not each.isdir]


@pytest.fixture
def warehouse(hdfs: Hdfs) -> Warehouse:
    return Warehouse(hdfs)


def test_a_dropped_table_leaves_nothing(hdfs: Hdfs) -> None:
    warehouse = Warehouse(hdfs)
    alterations = warehouse.connector.alterations
    assert alterations is not None
    assert alterations.drop_table(NAME, DropTableSpec())
    with pytest.raises(JobError) as caught:
        warehouse.connector.metadata.load_table(NAME)
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
    create(warehouse.connector, {"id": "int"})
    assert read(warehouse.connector) == []


def test_snapshots_expire(warehouse: Warehouse) -> None:
    warehouse.care.create_tag(NAME, CreateTagSpec("second", 2, "1 d"))
    with pytest.raises(JobError) as raised:
        warehouse.care.create_tag(NAME, CreateTagSpec("second", 3))
    assert raised.value.code is ErrorCode.TAG_EXISTS

    report = warehouse.care.expire_snapshots(NAME, EXPIRE, dry_run=False)

    assert (report.snapshots, report.data_files) == (4, 3)
    assert snapshot_ids(warehouse.connector) == [5]
    assert read(warehouse.connector) == [{"id": 5, "k": "x"}]
    assert len(warehouse.files(".parquet")) == 2
    assert not warehouse.files("/removal/")
    deleted = warehouse.care.delete_tag(NAME, DeleteTagSpec("second"), dry_run=False)
    assert deleted.data_files == 1
    assert len(warehouse.files(".parquet")) == 1


@pytest.mark.parametrize("way", ["driver", "spark"])
def test_rollback_then_orphans(
    warehouse: Warehouse, way: str, request: pytest.FixtureRequest
) -> None:
    session = request.getfixturevalue("spark") if way == "spark" else None
    rollback = RollbackSpec(snapshot_id=2, force=True)
    warehouse.care.roll_back(NAME, rollback, dag_id="", dry_run=False)
    orphans = RemoveOrphanFilesSpec()
    young = warehouse.care.remove_orphan_files(NAME, orphans, dry_run=False, spark=session)
    assert not young.changes

    later = datetime.now(UTC) + timedelta(days=2)
    care = warehouse.care
    tomorrow = PaimonMaintenance(care._metadata, care._storage, lambda: later)
    report = tomorrow.remove_orphan_files(NAME, orphans, dry_run=False, spark=session)

    assert report.data_files == 3
    assert len(warehouse.files(".parquet")) == 2
    assert read(warehouse.connector) == [{"id": 2, "k": "x"}]


def test_a_branch_from_begin_to_end(warehouse: Warehouse) -> None:
    from_begin_to_end(warehouse.connector)
