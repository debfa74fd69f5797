"""Statements that replace partitions where files are of older specs, judged by Iceberg's Java.

Partitions are of every transform and type, so also of floating numbers, bytes and times.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.partition_histories import PartitionHistory
from tests.judge.iceberg_spark import IcebergSpark
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
    assert sum(each.deleted for each in histories)
    assert sum(each.read for each in histories)
