"""Tags and rollbacks of this project, as Spark with Iceberg sees them and goes on after them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec, RollbackSpec
from spark_jobs.contract.request import JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.connectors.iceberg.tables import catalog_of, done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

TABLE = "db.tagged"


def test_spark_reads_and_changes_what_was_tagged_and_rolled_back(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge, table = iceberg_spark, f"{CATALOG}.{TABLE}"

    def care(operation_id: str, spec: CreateTagSpec | DeleteTagSpec | RollbackSpec) -> JobResult:
        name, origin = TableName.parse(TABLE), Origin(dag_id="d")
        request = JobRequest(operation_id, name, catalog_of(judge), spec, origin=origin)
        result = run(request, None)
        assert result.error is None, result.error
        return result

    def ids(version: str = "") -> list[int]:
        return [row["id"] for row in judge.sql(f"SELECT id FROM {table} {version} ORDER BY id")]

    judge.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg", f"INSERT INTO {table} VALUES (1)")
    assert care("tag", CreateTagSpec("before", retention="5 d")).status == "committed"
    done_here(spark, judge, f"INSERT INTO {TABLE} SELECT id FROM s", "SELECT 2 AS id")
    judge.sql(f"ALTER TABLE {table} CREATE TAG after", f"INSERT INTO {table} VALUES (3)")

    assert ids("VERSION AS OF 'before'") == [1]
    (row,) = judge.sql(f"SELECT max_reference_age_in_ms FROM {table}.refs WHERE name = 'before'")
    assert row["max_reference_age_in_ms"] == 5 * 86_400_000
    assert care("back", RollbackSpec(tag="before", force=True)).maintenance.snapshots == 2  # type: ignore[union-attr]
    assert ids() == [1]
    assert ids("VERSION AS OF 'after'") == [1, 2]
    judge.sql(f"INSERT INTO {table} VALUES (4)", f"ALTER TABLE {table} DROP TAG before")
    assert care("gone", DeleteTagSpec("before", if_exists=True)).status == "unchanged"
    judge.sql(f"CALL {CATALOG}.system.set_current_snapshot(table => '{TABLE}', ref => 'after')")
    assert care("gone-2", DeleteTagSpec("after")).status == "committed"
    assert ids() == [1, 2]
    assert [row["name"] for row in judge.sql(f"SELECT name FROM {table}.refs")] == ["main"]
