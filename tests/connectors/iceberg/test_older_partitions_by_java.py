"""Statements that replace partitions where files are of older specs, judged by Iceberg's Java.

Partitions are of every transform and type, so also of floating numbers, bytes and times.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.partition_histories import PartitionHistory
from tests.connectors.iceberg.tables import done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError
from tests.support.turns import EVERYTHING, part

pytestmark = pytest.mark.slow

_TURNS = 1000
_TABLES = 30 if EVERYTHING or part(_TURNS) else 6
_STEPS = 12


def test_random_partitions(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    first = _TABLES * part(_TURNS)
    histories = [
        PartitionHistory(spark.newSession(), iceberg_spark, seed)
        for seed in range(first, first + _TABLES)
    ]
    for history in histories:
        for _ in range(_STEPS):
            history.step()
            history.check()
        history.end()
    assert sum(each.deleted for each in histories)
    assert sum(each.read for each in histories)


def test_what_java_does(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    """Java replaces partitions of the current spec: what the docs say, and why we do not."""
    table = f"{CATALOG}.db.overwritten"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id INT, p STRING) USING iceberg",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b')",
        f"ALTER TABLE {table} ADD PARTITION FIELD p",
        f"INSERT INTO {table} VALUES (3, 'a'), (4, 'b')",
    )

    def ids() -> list[int]:
        return [row["id"] for row in iceberg_spark.sql(f"SELECT id FROM {table} ORDER BY id")]

    with pytest.raises(IcebergSparkError, match="some, but not all, rows match filter"):
        iceberg_spark.sql(f"INSERT OVERWRITE {table} PARTITION (p = 'a') SELECT 5")
    iceberg_spark.sql(
        "SET spark.sql.sources.partitionOverwriteMode = dynamic",
        f"INSERT OVERWRITE {table} VALUES (5, 'a')",
        "RESET spark.sql.sources.partitionOverwriteMode",
    )
    assert ids() == [1, 2, 4, 5]

    done_here(
        spark,
        iceberg_spark,
        "INSERT OVERWRITE db.overwritten PARTITION (p = 'a') SELECT * FROM s",
        "SELECT 6 AS id",
    )
    assert ids() == [2, 4, 6]
