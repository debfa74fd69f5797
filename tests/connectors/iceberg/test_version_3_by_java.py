"""Tables of version 3, which this project and Iceberg's own engine change in turn: rows and ids."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.lineage import Ids
from tests.connectors.iceberg.tables import assert_read_alike, catalog_of, done_here, opened
from tests.judge.iceberg_spark import CATALOG, IcebergSpark
from tests.support.iceberg_changes import deleted

pytestmark = pytest.mark.slow

MODES = ("copy-on-write", "merge-on-read")
NO_SOURCE = "SELECT 0 AS id"
MERGE = (
    "MERGE INTO db.{name} t USING s ON t.id = s.id "
    "WHEN MATCHED AND s.v = 'gone' THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.p, s.v)"
)


def _created(judge: IcebergSpark, name: str, mode: str, version: int = 3, layout: str = "") -> None:
    properties = {"format-version": str(version)}
    properties |= {f"write.{each}.mode": mode for each in ("merge", "update", "delete")}
    told = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    table = f"{CATALOG}.db.{name}"
    judge.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING, v STRING) USING iceberg {layout} "
        f"TBLPROPERTIES ({told})",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'a', 'x' FROM range(0, 10)",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'b', 'y' FROM range(10, 20)",
    )


def _source(*rows: tuple[int, str, str]) -> str:
    values = ", ".join(f"({key}L, '{p}', '{v}')" for key, p, v in rows)
    return f"SELECT * FROM VALUES {values} AS x(id, p, v)"


def _compacted(spark: SparkSession, judge: IcebergSpark, name: str, spec: CompactSpec) -> None:
    request = JobRequest(
        operation_id=str(uuid.uuid4()),
        target=TableName("db", name),
        catalog=catalog_of(judge),
        statement=spec,
        sources=(),
    )
    result = run(request, spark)
    assert result.error is None, result.error


def _rows(judge: IcebergSpark, name: str) -> Sequence[tuple[Any, ...]]:
    found = judge.sql(f"SELECT id, p, v FROM {CATALOG}.db.{name} ORDER BY id")
    return [tuple(each.values()) for each in found]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [2, 3])
def test_statements_and_java_in_turn(
    spark: SparkSession, iceberg_spark: IcebergSpark, mode: str, version: int
) -> None:
    judge, name = iceberg_spark, f"turn_{mode[:4]}_{version}"
    table = f"{CATALOG}.db.{name}"
    _created(judge, name, mode, version)
    if version == 2:
        judge.sql(
            f"DELETE FROM {table} WHERE id = 4",
            f"DELETE FROM {table} WHERE id = 11",
        )
        _compacted(spark, judge, name, CompactSpec(mode="full"))
        judge.sql(
            f"DELETE FROM {table} WHERE id = 11 OR id = 18",
            f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')",
            f"INSERT INTO {table} VALUES (4, 'a', 'back'), (11, 'b', 'back'), (18, 'b', 'back')",
        )
    ids = Ids(judge, f"db.{name}")
    ids.follow(new=range(20))

    source = _source((3, "a", "new"), (5, "a", "gone"), (30, "c", "z"))
    done_here(spark, judge, MERGE.format(name=name), source)
    ids.follow(changed=[3], gone=[5], new=[30])
    done_here(spark, judge, f"UPDATE db.{name} SET v = 'up' WHERE id IN (3, 7, 12)", NO_SOURCE)
    ids.follow(changed=[3, 7, 12])
    judge.sql(f"UPDATE {table} SET v = 'java' WHERE id IN (7, 8, 30)")
    ids.follow(changed=[7, 8, 30])
    done_here(spark, judge, f"DELETE FROM db.{name} WHERE id IN (8, 9, 12, 13)", NO_SOURCE)
    ids.follow(gone=[8, 9, 12, 13])
    judge.sql(f"DELETE FROM {table} WHERE id IN (2, 14)")
    ids.follow(gone=[2, 14])
    insert = f"INSERT INTO db.{name} SELECT id, p, v FROM s"
    done_here(spark, judge, insert, _source((9, "a", "again")))
    ids.follow(new=[9])
    assert_read_alike(spark, judge, f"db.{name}")

    _compacted(spark, judge, name, CompactSpec(mode="full"))
    ids.follow()
    _compacted(spark, judge, name, CompactSpec(manifests="only"))
    ids.follow()
    done_here(spark, judge, f"UPDATE db.{name} SET v = 'late' WHERE id > 15", NO_SOURCE)
    ids.follow(changed=[16, 17, 18, 19, 30])
    rewrite_all = "options => map('rewrite-all', 'true')"
    judge.sql(f"CALL {CATALOG}.system.rewrite_data_files(table => 'db.{name}', {rewrite_all})")
    ids.follow()
    judge.sql(f"CALL {CATALOG}.system.rewrite_manifests('db.{name}')")
    ids.follow()
    done_here(spark, judge, f"DELETE FROM db.{name} WHERE id = 16", NO_SOURCE)
    ids.follow(gone=[16])
    assert_read_alike(spark, judge, f"db.{name}")
    assert (3, "a", "up") in _rows(judge, name)


def test_java_expires_no_vector_that_is_needed(iceberg_spark: IcebergSpark) -> None:
    name = f"v{uuid.uuid4().hex[:8]}"
    table = f"{CATALOG}.db.{name}"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, s STRING) USING iceberg "
        "TBLPROPERTIES ('format-version'='3', 'write.merge.mode'='merge-on-read')",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'x' FROM range(0, 10)",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'x' FROM range(0, 10)",
    )
    connector, target = opened(iceberg_spark), TableName("db", name)
    # One task marks a row of both files, then another one marks a row of one of them.
    write = DirectWrite(connector, name=target, rewrite_share=0.9)
    sink = write.handle.sinks.open("one task")
    for file in range(2):
        sink.store_merged_rows(deleted(file, 1))
    write.fragments += sink.finish()
    write.publish()
    DirectWrite(connector, name=target, rewrite_share=0.9).delete(0, 2).publish()

    iceberg_spark.sql(f"INSERT INTO {table} VALUES (10, 'x')")
    iceberg_spark.expire(f"db.{name}")

    found = iceberg_spark.sql(f"SELECT id FROM {table} ORDER BY id")
    assert [row["id"] for row in found] == [0, 0, 2, *sorted([*range(3, 10)] * 2), 10]


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_move_and_a_table_that_is_cared_for(
    spark: SparkSession, iceberg_spark: IcebergSpark, mode: str
) -> None:
    judge, name = iceberg_spark, f"moved_{mode[:4]}"
    table = f"{CATALOG}.db.{name}"
    _created(judge, name, mode, layout="PARTITIONED BY (p, bucket(2, id))")
    judge.sql(f"ALTER TABLE {table} WRITE ORDERED BY v DESC")
    ids = Ids(judge, f"db.{name}")
    ids.follow(new=range(20))
    connector = opened(judge)
    assert connector.maintenance is not None
    target = TableName("db", name)
    connector.maintenance.create_tag(target, CreateTagSpec("begin"))

    done_here(spark, judge, f"UPDATE db.{name} SET p = 'c' WHERE id % 5 = 0", NO_SOURCE)
    ids.follow(changed=range(0, 20, 5))
    text = (
        f"MERGE INTO db.{name} t USING s ON t.id = s.id WHEN MATCHED AND s.v = 'gone' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET p = s.p, v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    source = _source((1, "z", "m"), (2, "a", "m"), (3, "a", "gone"), (40, "z", "m"), (5, "a", "m"))
    done_here(spark, judge, text, source)
    ids.follow(changed=[1, 2, 5], gone=[3], new=[40])
    judge.sql(f"UPDATE {table} SET p = 'y' WHERE id IN (1, 7)")
    ids.follow(changed=[1, 7])
    _compacted(spark, judge, name, CompactSpec(mode="full", sort_by=("id",)))
    ids.follow()
    judge.sql(f"ALTER TABLE {table} DROP PARTITION FIELD p")
    done_here(spark, judge, f"UPDATE db.{name} SET v = 'older' WHERE id IN (1, 8)", NO_SOURCE)
    ids.follow(changed=[1, 8])
    _compacted(spark, judge, name, CompactSpec(mode="full"))
    ids.follow()
    done_here(spark, judge, f"DELETE FROM db.{name} WHERE id IN (8, 9)", NO_SOURCE)
    ids.follow(gone=[8, 9])
    assert_read_alike(spark, judge, f"db.{name}")

    connector.maintenance.delete_tag(target, DeleteTagSpec("begin"), dry_run=False)
    expire = ExpireSnapshotsSpec(retain_min=1, older_than="0 s")
    expired = connector.maintenance.expire_snapshots(target, expire, dry_run=False)
    assert expired.snapshots > 5
    orphans = RemoveOrphanFilesSpec(older_than="1 d")
    assert connector.maintenance.remove_orphan_files(target, orphans, dry_run=True).data_files == 0
    ids.follow()
    before = ids.rows
    done_here(spark, judge, f"DELETE FROM db.{name} WHERE id = 10", NO_SOURCE)
    ids.follow(gone=[10])
    (oldest,) = judge.sql(
        f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1"
    )
    back = RollbackSpec(snapshot_id=oldest["snapshot_id"], force=True)
    connector.maintenance.roll_back(target, back, dag_id="", dry_run=False)
    assert ids.read() == before
    insert = f"INSERT INTO db.{name} SELECT id, p, v FROM s"
    done_here(spark, judge, insert, _source((50, "a", "x")))
    assert ids.read()[50].row_id not in ids.known
