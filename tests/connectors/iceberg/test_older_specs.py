"""Manifests of older partition specs that are written again, judged by Iceberg's Java."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.tables import done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow


def test_floating_partitions(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.floating"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, d DOUBLE) USING iceberg PARTITIONED BY (d)",
        f"INSERT INTO {table} VALUES (1, DOUBLE('NaN')), (2, 1.0D), (3, -0.0D), (4, 0.0D), "
        "(5, 1.0D), (6, 7.0D), (7, DOUBLE('NaN')), (8, -0.0D)",
        f"ALTER TABLE {table} DROP PARTITION FIELD d",
    )

    done_here(
        spark,
        iceberg_spark,
        "DELETE FROM db.floating WHERE id IN (SELECT k FROM s)",
        "SELECT explode(array(5, 6, 7, 8)) AS k",
    )

    def found(condition: str) -> list[int]:
        rows = iceberg_spark.sql(f"SELECT id FROM {table} WHERE {condition} ORDER BY id")
        return [row["id"] for row in rows]

    assert found("true") == [1, 2, 3, 4]
    assert found("d = 1.0D") == [2]
    assert found("isnan(d)") == [1]
    assert found("d < 1.0D") == [3, 4]
    told = {
        (each["contains_nan"], each["lower_bound"], each["upper_bound"])
        for row in iceberg_spark.sql(f"SELECT partition_summaries AS them FROM {table}.manifests")
        for each in row["them"]
    }
    # Those of removed files, too; the other manifest is of rewritten files.
    assert told == {(True, "-0.0", "7.0"), (True, "-0.0", "1.0")}


def test_a_partition_column_that_is_gone(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.gone"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, s STRING) USING iceberg PARTITIONED BY (s) "
        "TBLPROPERTIES ('format-version' = '2')",
        *(f"INSERT INTO {table} VALUES ({n}, 's{n}')" for n in range(3)),
        f"ALTER TABLE {table} DROP PARTITION FIELD s",
        f"ALTER TABLE {table} DROP COLUMN s",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '2')",
    )

    done_here(spark, iceberg_spark, "INSERT INTO db.gone SELECT * FROM s", "SELECT 3 AS id")

    assert iceberg_spark.sql(f"SELECT id FROM {table} ORDER BY id") == [{"id": n} for n in range(4)]
    (count,) = iceberg_spark.sql(f"SELECT count(*) AS n FROM {table}.manifests")
    assert count["n"] == 2
