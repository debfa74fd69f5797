"""Random histories of tables: this project, Spark with Iceberg and pyiceberg take turns.

After each step everybody must read the rows that a model in Python has. `make test-histories` runs
more and longer ones.
"""

from __future__ import annotations

import sys
import uuid

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.histories.together import Histories
from tests.connectors.iceberg.tables import assert_read_alike
from tests.judge.iceberg_spark import CATALOG, IcebergSpark
from tests.support.turns import EVERYTHING, part

pytestmark = pytest.mark.slow

_STEPS = 4
_TURNS = 1000
# The first 24 have every kind of step.
_HISTORIES = 40 if EVERYTHING or part(_TURNS) else 24
_KINDS = {
    *("MERGE, copy-on-write", "MERGE, merge-on-read"),
    *("MERGE by Java, copy-on-write", "MERGE by Java, merge-on-read"),
    *("append by pyiceberg", "roll back", "schema", "spec", "delete by value", "compact"),
    "upgrade",
    *("insert_overwrite, copy-on-write", "insert_overwrite, merge-on-read"),
    *("rewrite_data_files", "rewrite_manifests", "expire_snapshots"),
}


def test_histories(
    spark: SparkSession, iceberg_spark: IcebergSpark, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _HISTORIES * part(_TURNS)
    histories = Histories(spark, iceberg_spark, range(first, first + _HISTORIES))

    histories.run(_STEPS)

    with capsys.disabled():
        sys.stdout.write(f"\n{dict(histories.kinds.most_common())}\n")
    assert histories.problems == []
    assert histories.kinds.keys() >= _KINDS


def test_odd_names(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.odd"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, `a b` STRING, `c.d` STRUCT<`e f`: INT>) USING iceberg",
        f"INSERT INTO {table} VALUES (1, 'x', named_struct('e f', 1)), (2, 'y', NULL)",
    )
    for text in (
        "UPDATE db.odd SET `a b` = 'z', `c.d`.`e f` = 7 WHERE id = 2",
        "INSERT INTO db.odd VALUES (3, 'new', named_struct('e f', 3))",
    ):
        parsed = parse_statement(text)
        request = JobRequest(
            operation_id=str(uuid.uuid4()),
            target=TableName("db", "odd"),
            catalog=CatalogSpec("iceberg", str(iceberg_spark.warehouse), iceberg_spark.options),
            statement=parsed.statement,
            sources=parsed.sources,
        )
        result = run(request, spark)
        assert result.error is None, result.error

    found = iceberg_spark.sql(f"SELECT id, `a b`, `c.d`.`e f` AS n FROM {table} ORDER BY id")
    assert [tuple(row.values()) for row in found] == [(1, "x", 1), (2, "z", 7), (3, "new", 3)]
    assert_read_alike(spark, iceberg_spark, "db.odd")
