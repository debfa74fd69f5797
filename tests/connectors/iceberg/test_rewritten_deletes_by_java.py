"""Position deletes that were put together, as Spark with Iceberg and pyiceberg read them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactSpec
from tests.connectors.iceberg.tables import assert_read_alike
from tests.connectors.iceberg.test_compaction_by_java import compacted, files, rows_of
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow

DELETES = CompactSpec(mode="deletes", min_files=2)


@pytest.mark.parametrize("spec", ["", "PARTITIONED BY (p)"])
def test_deletes_of_partitions(spark: SparkSession, iceberg_spark: IcebergSpark, spec: str) -> None:
    judge, table = iceberg_spark, f"db.marked_{len(spec)}"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, p INT) USING iceberg {spec} "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
        "'write.delete.granularity' = 'partition')"
    )
    for number in range(3):
        judge.sql(
            f"INSERT INTO {CATALOG}.{table} SELECT /*+ COALESCE(1) */ "
            f"CAST(id + {number * 40} AS INT), CAST(id % 2 AS INT) FROM range(40)",
            f"DELETE FROM {CATALOG}.{table} WHERE id % 17 IN ({number}, {number + 4})",
        )
    before, counts = rows_of(judge, table), files(judge, table)

    report = compacted(spark, judge, table, DELETES)

    assert report.files_before == counts[1]
    assert rows_of(judge, table) == before
    after = files(judge, table)
    assert after == {0: counts[0], 1: report.files_after}
    marked = judge.sql(
        f"SELECT count(DISTINCT file_path) AS n FROM {CATALOG}.{table}.position_deletes"
    )
    assert after[1] == marked[0]["n"]
    assert_read_alike(spark, judge, table)
    assert judge.library().load_table(tuple(table.split("."))).scan().to_arrow().num_rows == len(
        before
    )
    assert compacted(spark, judge, table, DELETES).snapshots == ()
    # Others go on.
    judge.sql(
        f"DELETE FROM {CATALOG}.{table} WHERE id = 3",
        f"CALL {CATALOG}.system.rewrite_position_delete_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))",
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))",
    )
    assert len(rows_of(judge, table)) == len(before) - 1
    compacted(spark, judge, table, CompactSpec(mode="full", manifests="rewrite"))
    assert files(judge, table).keys() == {0}
