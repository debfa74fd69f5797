"""Iceberg tables on an object store, written without Spark and read by pyiceberg."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_history import care
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.test_compaction import compact
from tests.support.stores import REGION, ObjectStore

MERGES_ON_READ = {"write.merge.mode": "merge-on-read"}


@dataclass(frozen=True)
class StoredTables:
    """A SQL catalog on a local file, whose tables are in a bucket."""

    store: ObjectStore
    bucket: str
    folder: Path

    @property
    def options(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"s3://{self.bucket}/wh",
            "catalog-name": "stored",
            "s3.endpoint": self.store.endpoint,
            "s3.region": REGION,
            "init_catalog_tables": "true",
        }

    @property
    def keys(self) -> dict[str, str]:
        return {
            "s3.access-key-id": self.store.access_key,
            "s3.secret-access-key": self.store.secret_key,
        }

    def open(self, **keys: str) -> Connector:
        spec = CatalogSpec("iceberg", f"s3://{self.bucket}/wh", self.options)
        return open_connector(spec, keys or self.keys)

    def library(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog("stored", **self.options, **self.keys)


@pytest.fixture
def tables(moto: ObjectStore, tmp_path: Path) -> StoredTables:
    """An empty table ``db.t``, partitioned by ``s``."""
    made = StoredTables(moto, moto.new_bucket(), tmp_path)
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING"))
    spec = CreateTableSpec(columns, ("s",), table_options=MERGES_ON_READ)
    assert made.open().metadata.create_table(NAME, spec)
    return made


def test_rows_are_written_marked_and_read(tables: StoredTables) -> None:
    connector = tables.open()
    DirectWrite(connector).insert(*({"id": i, "s": "ü/ä"} for i in range(10))).publish()
    DirectWrite(connector).delete(0, 3, 4).publish()

    assert ids_of(tables) == [0, 1, 2, 5, 6, 7, 8, 9]
    table = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(table)
    assert connector.scan.count_rows(table, files) == 8


def test_a_write_that_is_given_up_leaves_nothing(tables: StoredTables) -> None:
    before = tables.store.keys(tables.bucket)
    write = DirectWrite(tables.open()).insert({"id": 1, "s": "a"})
    assert len(tables.store.keys(tables.bucket)) == len(before) + 2

    write.abort()

    assert tables.store.keys(tables.bucket) == before


def test_an_object_that_is_gone(tables: StoredTables) -> None:
    connector = tables.open()
    DirectWrite(connector).insert({"id": 1, "s": "a"}).publish()
    for key in tables.store.keys(tables.bucket):
        if "/snap-" in key:
            tables.store.client().delete_object(Bucket=tables.bucket, Key=key)

    with pytest.raises(JobError) as caught:
        connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert caught.value.code is ErrorCode.METADATA_UNREADABLE


def test_care(tables: StoredTables) -> None:
    """Compaction, expiry and a search for orphans: only what is needed is left."""
    connector = tables.open()
    for number in range(6):
        write = DirectWrite(connector).insert({"id": number, "s": "a"})
        write.publish()
        connector.writes.release_guard(write.table, write.operation_id)
    assert connector.compaction is not None
    assert connector.maintenance is not None

    compact(connector)
    assert ids_of(tables) == [0, 1, 2, 3, 4, 5]
    expired = ExpireSnapshotsSpec(older_than="0 s")
    report = connector.maintenance.expire_snapshots(NAME, expired, dry_run=False)

    assert (report.snapshots, report.data_files) == (6, 6)
    assert ids_of(tables) == [0, 1, 2, 3, 4, 5]
    kept = set(tables.store.keys(tables.bucket))
    parquet = [each for each in kept if each.endswith(".parquet")]
    assert len(parquet) == 1
    assert not [each for each in kept if "/removal/" in each]
    folder = parquet[0].rpartition("/data/")[0]
    tables.store.client().put_object(Bucket=tables.bucket, Key=f"{folder}/data/lost", Body=b"lost")
    later = care(connector, hours=48)
    report = later.remove_orphan_files(NAME, RemoveOrphanFilesSpec(), dry_run=False)
    assert report.files == ("data/lost",)
    assert set(tables.store.keys(tables.bucket)) == kept
    assert ids_of(tables) == [0, 1, 2, 3, 4, 5]
