"""Tables that this project alters, as Spark with Iceberg sees them; and the same by Spark."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.alter_table import parse_alter_table
from airflow_provider_merge.sql.create_table import parse_create_table
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.connectors.iceberg.tables import assert_read_alike, catalog_of, done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow

CREATE = (
    "CREATE TABLE {table} (id INT NOT NULL, s STRING, a STRUCT<x: INT, y: ARRAY<STRUCT<q: FLOAT>>>,"
    " ts TIMESTAMP, n DECIMAL(5, 2)) USING iceberg PARTITIONED BY (days(ts)) "
    "TBLPROPERTIES ({properties})"
)
ROWS = (
    "INSERT INTO {table} SELECT CAST(id AS INT), 's' || id, named_struct('x', CAST(id AS INT), "
    "'y', array(named_struct('q', CAST(id AS FLOAT)))), TIMESTAMP '2026-01-01 00:00:00' + "
    "make_interval(0, 0, 0, 0, CAST(id AS INT)), CAST(id AS DECIMAL(5, 2)) FROM range(20)"
)
# In the words of Spark and its extensions.
STATEMENTS = (
    "ADD COLUMNS (more STRING COMMENT 'new', a.z INT)",
    "ADD COLUMN first DATE FIRST",
    "ADD COLUMN behind DATE AFTER s",
    "RENAME COLUMN s TO text",
    "RENAME COLUMN a.x TO xx",
    "ALTER COLUMN id TYPE BIGINT",
    "ALTER COLUMN n TYPE DECIMAL(9, 2)",
    "ALTER COLUMN a.y.element.q TYPE DOUBLE",
    "ALTER COLUMN text COMMENT 'a text'",
    "ALTER COLUMN more FIRST",
    "ALTER COLUMN ts AFTER id",
    "DROP COLUMN behind",
    "SET IDENTIFIER FIELDS id",
    "DROP IDENTIFIER FIELDS id",
    "ALTER COLUMN id DROP NOT NULL",
    "ADD PARTITION FIELD bucket(4, id)",
    "ADD PARTITION FIELD truncate(2, text) AS short",
    "REPLACE PARTITION FIELD ts_day WITH hours(ts)",
    "DROP PARTITION FIELD id_bucket_4",
    "REPLACE PARTITION FIELD hours(ts) WITH days(ts)",
    "WRITE ORDERED BY text DESC NULLS FIRST, bucket(4, id)",
    "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",
    "WRITE LOCALLY ORDERED BY id DESC",
    "WRITE UNORDERED",
    "WRITE ORDERED BY id",
    "SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'a' = 'b')",
    "UNSET TBLPROPERTIES ('a')",
)
DEFAULTS = (
    "[\"it's\", '2026-01-31', '2026-01-31 01:00:00', '00FF', 0.10000000149011612, True, "
    "Decimal('-1.50')]"
)


def altered(judge: IcebergSpark, table: str, change: str, **options: Any) -> JobResult:
    target, spec = parse_alter_table(f"ALTER TABLE {table} {change}")
    result = run(JobRequest(str(uuid.uuid4()), target, catalog_of(judge), spec, **options), None)
    assert result.error is None, result.error
    return result


def created(judge: IcebergSpark, text: str) -> None:
    target, spec = parse_create_table(text)
    result = run(JobRequest(str(uuid.uuid4()), target, catalog_of(judge), spec), None)
    assert result.error is None, result.error


def definition(judge: IcebergSpark, name: str) -> dict[str, Any]:
    metadata = judge.library().load_table(("db", name)).metadata
    schema = json.loads(metadata.schema().model_dump_json())
    return {
        "fields": schema["fields"],
        "identifiers": schema.get("identifier-field-ids") or [],
        "spec": json.loads(metadata.spec().model_dump_json())["fields"],
        "order": json.loads(metadata.sort_order().model_dump_json())["fields"],
        "properties": metadata.properties,
        "version": metadata.format_version,
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_statement_does_what_spark_does(iceberg_spark: IcebergSpark, version: int) -> None:
    judge, ours, theirs = iceberg_spark, f"alter_here_{version}", f"alter_there_{version}"
    for name in (ours, theirs):
        properties = f"'format-version' = '{version}'"
        judge.sql(CREATE.format(table=f"{CATALOG}.db.{name}", properties=properties))

    for statement in STATEMENTS:
        altered(judge, f"db.{ours}", statement)
        judge.sql(f"ALTER TABLE {CATALOG}.db.{theirs} {statement}")
        assert definition(judge, ours) == definition(judge, theirs), statement


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_both_go_on(spark: SparkSession, iceberg_spark: IcebergSpark, mode: str) -> None:
    judge, table = iceberg_spark, f"db.altered_{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("merge", "update", "delete"))
    full = f"{CATALOG}.{table}"
    judge.sql(
        CREATE.format(table=full, properties=f"'format-version' = '2', {modes}"),
        ROWS.format(table=full),
        f"DELETE FROM {full} WHERE id = 3",
    )
    for statement in STATEMENTS[:19]:
        altered(judge, table, statement)

    assert assert_read_alike(spark, judge, table) == 19
    done_here(
        spark,
        judge,
        f"MERGE INTO {table} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET more = s.m, "
        "a.z = 7 WHEN NOT MATCHED THEN INSERT (id, more, ts) VALUES (s.id, s.m, s.ts)",
        "SELECT id, 'of ' || id AS m, TIMESTAMP '2026-02-01 00:00:00' AS ts FROM range(10, 25)",
    )
    assert assert_read_alike(spark, judge, table) == 24
    judge.sql(
        f"UPDATE {full} SET text = 'changed', a.xx = 1 WHERE id < 5",
        f"ALTER TABLE {full} ADD COLUMN theirs INT",
        f"CALL {CATALOG}.system.rewrite_data_files('{table}')",
    )
    altered(judge, table, "DROP COLUMN theirs, first")
    done_here(spark, judge, f"DELETE FROM {table} WHERE id >= 20", "SELECT 1")
    assert assert_read_alike(spark, judge, table) == 19
    (row,) = judge.sql(f"SELECT text, a.xx, a.z, n FROM {full} WHERE id = 4")
    assert (row["text"], row["xx"], row["z"], str(row["n"])) == ("changed", 1, None, "4.00")


@pytest.mark.parametrize("before", [1, 2])
def test_an_upgrade_to_version_3(
    spark: SparkSession, iceberg_spark: IcebergSpark, before: int
) -> None:
    judge, table = iceberg_spark, f"db.upgraded_{before}"
    full = f"{CATALOG}.{table}"
    modes = [f"'write.{each}.mode' = 'merge-on-read'" for each in ("merge", "update", "delete")]
    properties = [f"'format-version' = '{before}'", *(modes if before == 2 else [])]
    judge.sql(
        CREATE.format(table=full, properties=", ".join(properties)),
        ROWS.format(table=full),
        f"DELETE FROM {full} WHERE id IN (3, 4)",
    )

    altered(judge, table, "SET TBLPROPERTIES ('format-version' = '3')")
    altered(judge, table, "ADD COLUMNS k INT NOT NULL DEFAULT 5, w DECIMAL(5, 2) DEFAULT 1.5")
    assert judge.sql(f"SELECT DISTINCT k, CAST(w AS STRING) AS w FROM {full}") == [
        {"k": 5, "w": "1.50"}
    ]
    assert assert_read_alike(spark, judge, table) == 18

    done_here(
        spark,
        judge,
        f"MERGE INTO {table} t USING s ON t.id = s.id WHEN MATCHED AND s.id < 12 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET s = 'new' WHEN NOT MATCHED THEN INSERT (id, ts) "
        "VALUES (s.id, s.ts)",
        "SELECT id, TIMESTAMP '2026-02-01 00:00:00' AS ts FROM range(10, 25)",
    )
    altered(judge, table, "ALTER COLUMN k SET DEFAULT 6")
    judge.sql(
        f"INSERT INTO {full} (id, ts) VALUES (30, TIMESTAMP '2026-02-02 00:00:00')",
        f"DELETE FROM {full} WHERE id = 24",
        f"CALL {CATALOG}.system.rewrite_data_files('{table}')",
    )
    assert assert_read_alike(spark, judge, table) == 21
    found = judge.sql(f"SELECT id, k, _row_id FROM {full}")
    assert len({each["_row_id"] for each in found} - {None}) == 21
    assert {each["id"]: each["k"] for each in found if each["id"] > 20} == {
        **dict.fromkeys((21, 22, 23), 5),
        30: 6,
    }


def test_columns_beside_a_type_that_is_not_known(iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, "db.altered_variant"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, v ARRAY<VARIANT>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')",
        f"INSERT INTO {CATALOG}.{table} SELECT 1, array(parse_json('5'))",
    )
    for text in (f"ALTER TABLE {table} ADD COLUMN n INT", f"ALTER TABLE {table} DROP COLUMN v"):
        target, spec = parse_alter_table(text)
        request = JobRequest(str(uuid.uuid4()), target, catalog_of(judge), spec)
        error = run(request, None).error
        assert error is not None
        assert (error.code, "column v has the type variant" in error.message) == (
            "NOT_SUPPORTED",
            True,
        ), error
    target, like = parse_create_table(f"CREATE TABLE db.like_variant LIKE {table}")
    error = run(JobRequest(str(uuid.uuid4()), target, catalog_of(judge), like), None).error
    assert error is not None
    assert error.code == "NOT_SUPPORTED"
    altered(judge, table, "SET TBLPROPERTIES ('a' = 'b')")
    altered(judge, table, "WRITE ORDERED BY id")
    judge.sql(f"INSERT INTO {CATALOG}.{table} SELECT 2, array(parse_json('6'))")
    found = judge.sql(f"SELECT id, to_json(v[0]) AS v FROM {CATALOG}.{table} ORDER BY id")
    assert found == [{"id": 1, "v": "5"}, {"id": 2, "v": "6"}]


def test_a_table_with_defaults_and_one_like_it(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge = iceberg_spark
    created(
        judge,
        "CREATE TABLE db.defaults (id BIGINT NOT NULL, s STRING DEFAULT 'it''s' , "
        "d DATE DEFAULT DATE '2026-01-31', t TIMESTAMP DEFAULT TIMESTAMP '2026-01-31 01:00:00Z', "
        "b BINARY DEFAULT X'00FF', f FLOAT DEFAULT 0.1, o BOOLEAN DEFAULT true, "
        "n DECIMAL(5, 2) DEFAULT -1.5, PRIMARY KEY (id)) PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')".replace(
            "'it''s'", r"'it\'s'"
        ),
    )
    altered(judge, "db.defaults", "WRITE ORDERED BY id DESC")
    created(judge, "CREATE TABLE db.like_it LIKE db.defaults TBLPROPERTIES ('x' = 'y')")
    first, second = definition(judge, "defaults"), definition(judge, "like_it")
    assert second.pop("properties") == {**first.pop("properties"), "x": "y"}
    assert second == first

    for name in ("defaults", "like_it"):
        judge.sql(f"INSERT INTO {CATALOG}.db.{name} (id) VALUES (1)")
        done_here(spark, judge, f"INSERT INTO db.{name} (id) SELECT * FROM s", "SELECT 2L AS id")
        assert assert_read_alike(spark, judge, f"db.{name}") == 2
        texts = "s, CAST(d AS STRING) AS d, CAST(t AS STRING) AS t, hex(b) AS b, f, o, n"
        rows = judge.sql(f"SELECT DISTINCT {texts} FROM {CATALOG}.db.{name}")
        assert [str(list(row.values())) for row in rows] == [DEFAULTS]
