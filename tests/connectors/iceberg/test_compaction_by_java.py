"""Compactions of this project, as Spark with Iceberg reads them and goes on after them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.plain_history import NAME
from tests.connectors.iceberg.tables import assert_read_alike, catalog_of, done_here, opened
from tests.connectors.iceberg.test_compaction import Compacting
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow


def compacted(
    spark: SparkSession, judge: IcebergSpark, table: str, spec: CompactSpec
) -> CompactionReport:
    request = JobRequest(uuid.uuid4().hex, TableName.parse(table), catalog_of(judge), spec)
    result = run(request, spark)
    assert result.error is None, result.error
    assert result.compaction is not None
    return result.compaction


def files(judge: IcebergSpark, table: str) -> dict[int, int]:
    """The number of live files by their content: 0 data, 1 positions, 2 values."""
    rows = judge.sql(f"SELECT content, count(*) AS n FROM {CATALOG}.{table}.files GROUP BY content")
    return {row["content"]: row["n"] for row in rows}


def rows_of(judge: IcebergSpark, table: str) -> list[Any]:
    return sorted(map(repr, judge.sql(f"SELECT * FROM {CATALOG}.{table}")))


def test_partitions_with_deletes(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, "db.small_files"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, day DATE, s STRING) USING iceberg "
        "PARTITIONED BY (day, bucket(2, id)) TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
    )
    for number in range(4):
        judge.sql(
            f"INSERT INTO {CATALOG}.{table} SELECT CAST(id + {number * 20} AS INT), "
            f"DATE '2026-01-0{number % 2 + 1}', 'x' FROM range(20)"
        )
    judge.sql(f"DELETE FROM {CATALOG}.{table} WHERE id % 7 = 0")
    done_here(spark, judge, f"UPDATE {table} SET s = 'y' WHERE id % 5 = 0", "SELECT 1 AS id")
    before = rows_of(judge, table)
    assert files(judge, table)[1] > 0

    chosen = CompactSpec(({"day": "DATE '2026-01-01'"},), mode="full")
    report = compacted(spark, judge, table, chosen)

    assert report.partitions_compacted == 2
    assert rows_of(judge, table) == before
    report = compacted(spark, judge, table, CompactSpec(mode="full"))
    assert report.partitions_compacted == 2
    assert files(judge, table) == {0: 4}
    assert rows_of(judge, table) == before
    assert compacted(spark, judge, table, CompactSpec(mode="full")).snapshots == ()
    assert_read_alike(spark, judge, table)
    # Others go on.
    judge.sql(
        f"DELETE FROM {CATALOG}.{table} WHERE id = 11",
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))",
        f"CALL {CATALOG}.system.rewrite_manifests('{table}')",
    )
    left = rows_of(judge, table)
    assert len(left) == len(before) - 1
    compacted(spark, judge, table, CompactSpec(mode="full"))
    assert rows_of(judge, table) == left


def test_equality_deletes_of_others_meanwhile_apply(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge, table = iceberg_spark, f"{CATALOG}.{NAME}"
    judge.sql(
        f"DROP TABLE IF EXISTS {table} PURGE",
        f"CREATE TABLE {table} (id INT, v STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')",
    )
    for number in range(6):
        judge.sql(f"INSERT INTO {table} VALUES ({number}, 'old')")
    work = Compacting(opened(judge))
    judge.steps(str(NAME), ("delete_by_value", "id", 2))
    judge.sql(f"INSERT INTO {table} VALUES (2, 'new')")

    (group,) = work.publish()

    assert group.lost == frozenset()
    assert judge.sql(f"SELECT v FROM {table} WHERE id = 2") == [{"v": "new"}]
    assert len(rows_of(judge, str(NAME))) == 6
    assert files(judge, str(NAME)) == {0: 2, 2: 1}
    # The next one applies the delete, which is about no other file.
    compacted(spark, judge, str(NAME), CompactSpec(mode="full"))
    assert files(judge, str(NAME)) == {0: 1}
    assert judge.sql(f"SELECT v FROM {table} WHERE id = 2") == [{"v": "new"}]
    assert_read_alike(spark, judge, str(NAME))
    (latest,) = judge.sql(
        f"SELECT summary FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    assert latest["summary"]["total-equality-deletes"] == "0"


def test_a_sorted_table(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, "db.small_sorted"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, d DOUBLE, at TIMESTAMP) USING iceberg "
        "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"
    )
    for number in range(3):
        judge.sql(
            f"INSERT INTO {CATALOG}.{table} SELECT CAST(id + {number * 50} AS INT), "
            "get(array(DOUBLE('NaN'), -1D, 0.5D, 2D), int(abs(hash(id)) % 5)), "
            "TIMESTAMP'2026-01-01' + make_interval(0, 0, 0, 0, int(abs(hash(id, 1)) % 90)) "
            "FROM range(50)"
        )
    judge.sql(
        f"DELETE FROM {CATALOG}.{table} WHERE id % 7 = 0",
        f"ALTER TABLE {CATALOG}.{table} WRITE ORDERED BY "
        "days(at) DESC NULLS LAST, d ASC NULLS FIRST, id",
    )
    before = rows_of(judge, table)

    report = compacted(spark, judge, table, CompactSpec(mode="full"))

    assert report.files_after == 2
    assert rows_of(judge, table) == before
    kept, ordered = (
        judge.sql(
            f"SELECT _file, id FROM {CATALOG}.{table} ORDER BY _file, "
            + by.format(days=f"{CATALOG}.system.days(at)")
        )
        for by in ("_pos", "{days} DESC NULLS LAST, d ASC NULLS FIRST, id")
    )
    assert kept == ordered
    found = judge.sql(f"SELECT sort_order_id AS n FROM {CATALOG}.{table}.data_files")
    assert [each["n"] for each in found] == [1, 1]
    assert compacted(spark, judge, table, CompactSpec(mode="full")).snapshots == ()
    assert_read_alike(spark, judge, table)


def test_a_z_order(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, "db.z_ordered"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (x INT, y BIGINT, s STRING) USING iceberg "
        "PARTITIONED BY (s) TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read')",
        f"INSERT INTO {CATALOG}.{table} SELECT CAST(id % 64 AS INT), id DIV 64, "
        "get(array('a', 'b'), int(id % 2)) FROM range(4096)",
        f"DELETE FROM {CATALOG}.{table} WHERE x = y",
    )
    before = rows_of(judge, table)

    spec = CompactSpec(mode="full", target_file_size="400 b", zorder_by=("x", "Y"))
    report = compacted(spark, judge, table, spec)

    assert report.files_after > report.partitions_compacted == 2
    assert rows_of(judge, table) == before
    found = judge.sql(f"SELECT sort_order_id AS n FROM {CATALOG}.{table}.data_files")
    assert [each["n"] for each in found] == [0] * report.files_after
    assert_read_alike(spark, judge, table)
    judge.sql(f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}')")
    assert rows_of(judge, table) == before
