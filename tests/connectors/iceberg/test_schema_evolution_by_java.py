"""Columns that statements add, as Spark with Iceberg sees them, which goes on in between."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.rest_tables import RestTables
from tests.connectors.iceberg.tables import assert_read_alike, done_here, statement_done
from tests.judge.iceberg_server import IcebergRest, iceberg_rest
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

__all__ = ["iceberg_rest"]

pytestmark = pytest.mark.slow

UPSERT = (
    "MERGE WITH SCHEMA EVOLUTION INTO {table} t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_both_go_on(spark: SparkSession, iceberg_spark: IcebergSpark, mode: str) -> None:
    judge, table = iceberg_spark, f"db.grows_{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("merge", "update", "delete"))
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, n INT, a STRUCT<x: INT>) USING iceberg "
        f"PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '2', {modes})",
        f"INSERT INTO {CATALOG}.{table} SELECT CAST(id AS INT), CAST(id AS INT), "
        "named_struct('x', CAST(id AS INT)) FROM range(10)",
    )

    result = done_here(
        spark,
        judge,
        UPSERT.format(table=table),
        "SELECT CAST(id AS INT) AS id, 10000000000 AS n, "
        "named_struct('x', 7, 'y', 'new') AS a, 'of ' || id AS more FROM range(5, 15)",
        type_widening=True,
    )

    assert result.schema_changes == (
        "widened n from INT to BIGINT",
        "added a.y STRING",
        "added more STRING",
    )
    assert assert_read_alike(spark, judge, table) == 15
    history = judge.sql(
        f"SELECT snapshot_id FROM {CATALOG}.{table}.snapshots ORDER BY committed_at"
    )
    first = history[0]["snapshot_id"]
    old = judge.sql(f"SELECT * FROM {CATALOG}.{table} VERSION AS OF {first} WHERE id = 9")
    assert old == [{"id": 9, "n": 9, "a": {"x": 9}}]
    judge.sql(
        f"ALTER TABLE {CATALOG}.{table} ADD COLUMN theirs DATE",
        f"ALTER TABLE {CATALOG}.{table} RENAME COLUMN more TO renamed",
        f"UPDATE {CATALOG}.{table} SET theirs = DATE '2026-01-01', a.x = 1 WHERE id < 7",
    )
    assert assert_read_alike(spark, judge, table) == 15
    done_here(
        spark,
        judge,
        f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT * FROM s",
        "SELECT 20 AS id, 'again' AS more, ARRAY(1, 2) AS list",
    )
    judge.sql(f"CALL {CATALOG}.system.rewrite_data_files('{table}')")
    assert assert_read_alike(spark, judge, table) == 16
    (newest,) = judge.sql(f"SELECT renamed, more, list FROM {CATALOG}.{table} WHERE id = 20")
    assert newest == {"renamed": None, "more": "again", "list": [1, 2]}


def test_columns_without_rows(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, "db.grows_empty"
    judge.sql(f"CREATE TABLE {CATALOG}.{table} (id INT) USING iceberg")

    result = done_here(spark, judge, UPSERT.format(table=table), "SELECT 1 AS id, 2 AS m LIMIT 0")

    assert result.schema_changes == ("added m INT",)
    assert judge.sql(f"SELECT id, m FROM {CATALOG}.{table}") == []
    assert judge.sql(f"SELECT * FROM {CATALOG}.{table}.snapshots") == []


def test_a_server_stores_columns_and_rows_at_once(
    spark: SparkSession, iceberg_rest: IcebergRest
) -> None:
    tables = RestTables(iceberg_rest)
    made = tables.emptied().create_table(
        ("db", "t"), spark.range(0).toArrow().schema, properties={"format-version": "2"}
    )
    text = UPSERT.format(table="db.t")
    credentials = {"token": iceberg_rest.secret}
    catalog = tables.spec()

    statement_done(spark, catalog, text, "SELECT 1L AS id, 'new' AS more", credentials)
    made.refresh()
    statement_done(spark, catalog, text, "SELECT 2L AS id, 3 AS again LIMIT 0", credentials)

    table = tables.library().load_table(("db", "t"))
    assert made.schema().column_names == ["id", "more"]
    assert made.current_snapshot().schema_id == made.schema().schema_id
    assert table.schema().column_names == ["id", "more", "again"]
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "more": "new", "again": None}]
