"""Rows of tables that Spark with Iceberg made, by both readers: exactly those that it reads."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi.tables import ColumnRange
from tests.connectors.iceberg.tables import assert_read_alike, opened
from tests.judge.iceberg_spark import IcebergSpark

pytestmark = pytest.mark.slow

MERGE_ON_READ = ", ".join(
    f"'write.{each}.mode'='merge-on-read'" for each in ("merge", "update", "delete")
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_columns_that_have_changed_since_files_were_written(
    spark: SparkSession, iceberg_spark: IcebergSpark, version: int
) -> None:
    table = f"ice.db.evolved{version}"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT NOT NULL, s STRING, f FLOAT, d DECIMAL(9,2), at TIMESTAMP, "
        "n STRUCT<x: INT, y: ARRAY<STRUCT<u: INT>>>, m MAP<STRING, STRUCT<v: INT>>) "
        f"USING iceberg TBLPROPERTIES ('format-version'='{version}')",
        f"INSERT INTO {table} SELECT int(id), concat('s', id), id / 4, id / 8, "
        "timestamp_micros(-id * 1000001), named_struct('x', int(id), 'y', "
        "array(named_struct('u', int(id)))), map('k', named_struct('v', int(id))) FROM range(9)",
        f"INSERT INTO {table} VALUES (100, NULL, NULL, NULL, NULL, NULL, NULL)",
        f"ALTER TABLE {table} RENAME COLUMN s TO t",
        f"ALTER TABLE {table} ADD COLUMN s DATE FIRST",
        f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT",
        f"ALTER TABLE {table} ALTER COLUMN f TYPE DOUBLE",
        f"ALTER TABLE {table} ALTER COLUMN d TYPE DECIMAL(20,2)",
        f"ALTER TABLE {table} ADD COLUMN n.z STRING",
        f"ALTER TABLE {table} RENAME COLUMN n.x TO `x y`",
        f"ALTER TABLE {table} ADD COLUMN n.y.element.w STRING",
        f"ALTER TABLE {table} DROP COLUMN m.value.v" if version > 3 else "SELECT 1",
        f"ALTER TABLE {table} ADD COLUMN m.value.w INT",
        f"INSERT INTO {table} VALUES (DATE'2020-01-01', 200, 't', 0.1, 123456789012.25, "
        "TIMESTAMP'1900-01-01 00:00:00', named_struct('x y', 1, 'y', array(NULL, named_struct('u', "
        "1, 'w', 'w')), 'z', 'z'), map('k', named_struct('v', 1, 'w', 2)))",
    )

    assert assert_read_alike(spark, iceberg_spark, f"db.evolved{version}") == 11


@pytest.mark.parametrize(("version", "granularity"), [(2, "file"), (2, "partition"), (3, "file")])
def test_rows_that_are_marked_as_deleted(
    spark: SparkSession, iceberg_spark: IcebergSpark, version: int, granularity: str
) -> None:
    table = f"ice.db.marked_{version}_{granularity}"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', {MERGE_ON_READ}, "
        f"'write.delete.granularity'='{granularity}')",
        *(
            f"INSERT INTO {table} SELECT id, string(id % 2) FROM range({n}000, {n}400)"
            for n in (1, 2)
        ),
        f"DELETE FROM {table} WHERE id % 7 = 3",
        f"DELETE FROM {table} WHERE id % 11 = 3",
        f"UPDATE {table} SET id = -id WHERE id % 13 = 3",
        f"DELETE FROM {table} WHERE id = -1004",
    )
    connector = opened(iceberg_spark)
    handle = connector.metadata.load_table(TableName("db", table.rpartition(".")[2]))
    files = connector.metadata.plan_files(handle)

    count = assert_read_alike(spark, iceberg_spark, table.removeprefix("ice."))

    assert connector.scan.count_rows(handle, files) == count
    exact = [each for each in files if each.has_exact_count]
    if version == 3:
        assert len(exact) == len(files)
        assert sum(each.live_row_count for each in files) == count


def test_files_of_older_partition_specs(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = "ice.db.respecified"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, s STRING, at TIMESTAMP) USING iceberg "
        f"PARTITIONED BY (bucket(4, id), day(at)) TBLPROPERTIES ({MERGE_ON_READ})",
        f"INSERT INTO {table} SELECT id, concat('s', id), timestamp_seconds(id) FROM range(-9, 9)",
        f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(4, id) WITH truncate(2, s)",
        f"INSERT INTO {table} SELECT id, concat('s', id), timestamp_seconds(id) FROM range(-5, 5)",
        f"DELETE FROM {table} WHERE id IN (1, 3)",
        f"ALTER TABLE {table} DROP PARTITION FIELD day(at)",
        f"ALTER TABLE {table} RENAME COLUMN s TO t",
        f"INSERT INTO {table} VALUES (77, NULL, NULL)",
    )

    assert assert_read_alike(spark, iceberg_spark, "db.respecified") == 25


def test_files_of_before_iceberg(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    """Files without ids, found by the name mapping; their partition is only in their path."""
    folder = iceberg_spark.folder / "hive"
    table = "ice.db.migrated"
    iceberg_spark.sql(
        "CREATE TEMPORARY VIEW hive AS SELECT id, named_struct('x', id) AS n, "
        "timestamp_seconds(id) AS at, string(id % 3) AS p FROM range(30)",
        f"INSERT OVERWRITE DIRECTORY '{folder}/p=a' USING parquet SELECT id, n, at FROM hive",
        f"INSERT OVERWRITE DIRECTORY '{folder}/p=b' USING parquet SELECT id, n, at FROM hive",
        f"CREATE TABLE {table} (id BIGINT, n STRUCT<x: BIGINT>, at TIMESTAMP, p STRING) "
        "USING iceberg PARTITIONED BY (p)",
        "CALL ice.system.add_files(table => 'db.migrated', "
        f"source_table => '`parquet`.`{folder}`')",
        f"ALTER TABLE {table} RENAME COLUMN id TO key",
        f"ALTER TABLE {table} ADD COLUMN extra STRING",
        f"INSERT INTO {table} VALUES (-1, NULL, NULL, 'c', 'new')",
    )

    assert assert_read_alike(spark, iceberg_spark, "db.migrated") == 61


def test_branches_and_nested_namespaces(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    iceberg_spark.sql(
        "CREATE NAMESPACE IF NOT EXISTS ice.a.b",
        "CREATE TABLE ice.a.b.t (id BIGINT) USING iceberg",
        "INSERT INTO ice.a.b.t VALUES (1)",
        "ALTER TABLE ice.a.b.t CREATE BRANCH audit",
        "INSERT INTO ice.a.b.t.branch_audit VALUES (2)",
        "INSERT INTO ice.a.b.t VALUES (3)",
    )
    connector = opened(iceberg_spark)

    def ids(name: str) -> list[int]:
        table = connector.metadata.load_table(TableName("a.b", name))
        files = connector.metadata.plan_files(table)
        frame = connector.scan.read(spark, table, files, ["id"])
        return sorted(row["id"] for row in frame.collect())

    assert (ids("t"), ids("t$branch_audit"), ids("t$branch_main")) == ([1, 3], [1, 2], [1, 3])
    for name in (TableName("a.b", "t$branch_none"), TableName("a..b", "t"), TableName("a", "t")):
        with pytest.raises(CatalogError) as caught:
            connector.metadata.load_table(name)
        assert caught.value.code is ErrorCode.TABLE_NOT_FOUND
    with pytest.raises(NotSupportedError, match="metadata table"):
        connector.metadata.load_table(TableName("a.b", "t$snapshots"))


def test_bounds_come_from_metrics_and_partitions(iceberg_spark: IcebergSpark) -> None:
    table = "ice.db.bounded"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, at TIMESTAMP, s STRING, d DATE, k INT) USING iceberg "
        "PARTITIONED BY (truncate(10, id), day(at), truncate(2, s), month(d), bucket(3, k)) "
        "TBLPROPERTIES ('write.metadata.metrics.default'='none')",
        f"INSERT INTO {table} VALUES (17, TIMESTAMP'2024-02-29 12:00:00', 'äbc', "
        "DATE'2024-02-29', 5), (-3, NULL, NULL, NULL, NULL)",
    )
    connector = opened(iceberg_spark)
    handle = connector.metadata.load_table(TableName("db", "bounded"))

    files = connector.metadata.plan_files(handle)

    found = {each.ranges["id"].minimum: dict(each.ranges) for each in files}
    day = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    assert found[10] == {
        "id": ColumnRange(10, 19, 0),
        "at": ColumnRange(day, day + dt.timedelta(days=1, microseconds=-1), 0),
        "s": ColumnRange("äb", "äc", 0),
        "d": ColumnRange(dt.date(2024, 2, 1), dt.date(2024, 2, 29), 0),
        "k": ColumnRange(None, None, 0),
    }
    nulls = ColumnRange(None, None, 1)
    assert found[-10] == {
        "id": ColumnRange(-10, -1, 0),
        **dict.fromkeys(("at", "s", "d", "k"), nulls),
    }
