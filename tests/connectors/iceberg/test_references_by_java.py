"""Tags, branches and rollbacks of this project: Spark with Iceberg sees them, and goes on."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.maintenance import (
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    FastForwardSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.connectors.iceberg.tables import catalog_of, done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError

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


def test_spark_goes_on_with_branches_that_were_made_here(iceberg_spark: IcebergSpark) -> None:
    judge, table = iceberg_spark, f"{CATALOG}.db.branched"

    def care(operation_id: str, spec: Any, target: str = "db.branched") -> JobResult:
        request = JobRequest(operation_id, TableName.parse(target), catalog_of(judge), spec)
        return run(request, None)

    judge.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg", f"INSERT INTO {table} VALUES (1)")
    spec = CreateBranchSpec("audit", None, None, "9 d", "2 d", 4)
    assert care("branch", spec).status == "committed"
    (row,) = judge.sql(f"SELECT * FROM {table}.refs WHERE name = 'audit'")
    assert (row["type"], row["max_reference_age_in_ms"]) == ("BRANCH", 9 * 86_400_000)
    assert (row["max_snapshot_age_in_ms"], row["min_snapshots_to_keep"]) == (2 * 86_400_000, 4)
    judge.sql(f"INSERT INTO {table}.branch_audit VALUES (2)")
    assert care("forward", FastForwardSpec("audit")).status == "committed"
    assert len(judge.sql(f"SELECT * FROM {table}")) == 2
    # The branch keeps its retention when it moves.
    judge.sql(f"INSERT INTO {table} VALUES (3)")
    moved = care("forward-2", FastForwardSpec("main"), "db.`branched$branch_audit`")
    assert moved.status == "committed"
    (again,) = judge.sql(f"SELECT * FROM {table}.refs WHERE name = 'audit'")
    assert {**again, "snapshot_id": 0} == {**row, "snapshot_id": 0}
    judge.sql(f"INSERT INTO {table}.branch_audit VALUES (4)", f"INSERT INTO {table} VALUES (5)")
    refused = care("forward-3", FastForwardSpec("audit"))
    assert refused.error is not None
    assert refused.error.code == "BRANCHES_DIVERGED"
    with pytest.raises(IcebergSparkError, match="not an ancestor"):
        judge.sql(f"CALL {CATALOG}.system.fast_forward('db.branched', 'main', 'audit')")
    head = again["snapshot_id"]
    assert care("set", SetCurrentSnapshotSpec(head, force=True)).status == "committed"
    assert len(judge.sql(f"SELECT * FROM {table}")) == 3
    assert care("dropped", DeleteBranchSpec("audit")).status == "committed"
    judge.sql(f"INSERT INTO {table} VALUES (6)")
    assert [row["name"] for row in judge.sql(f"SELECT name FROM {table}.refs")] == ["main"]


def test_spark_reads_each_side_of_what_is_audited(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge, table = iceberg_spark, f"{CATALOG}.db.audited"

    def care(operation_id: str, spec: Any) -> str:
        request = JobRequest(operation_id, TableName("db", "audited"), catalog_of(judge), spec)
        result = run(request, None)
        assert result.error is None, result.error
        return result.status

    def ids(version: str = "") -> list[int]:
        return [row["id"] for row in judge.sql(f"SELECT id FROM {table} {version} ORDER BY id")]

    judge.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg", f"INSERT INTO {table} VALUES (1)")
    # A first attempt, which fails at a check: the next one begins anew.
    for attempt in ("first", "second"):
        care(f"old-{attempt}", DeleteBranchSpec("wap_1", if_exists=True))
        care(f"begin-{attempt}", CreateBranchSpec("wap_1"))
        text = "INSERT INTO db.`audited$branch_wap_1` SELECT id FROM s"
        done_here(spark, judge, text, "SELECT 2 AS id")
        assert ids() == [1]
        assert ids("VERSION AS OF 'wap_1'") == [1, 2]
    judge.sql(f"INSERT INTO {table}.branch_wap_1 VALUES (3)")
    assert ids() == [1]

    assert care("publish", FastForwardSpec("wap_1")) == "committed"
    assert care("publish-too", FastForwardSpec("wap_1")) == "unchanged"

    assert ids() == ids("VERSION AS OF 'wap_1'") == [1, 2, 3]
    judge.sql(f"INSERT INTO {table} VALUES (4)", f"INSERT INTO {table}.branch_wap_1 VALUES (5)")
    assert care("end", DeleteBranchSpec("wap_1")) == "committed"
    judge.sql(f"INSERT INTO {table} VALUES (6)")
    assert ids() == [1, 2, 3, 4, 6]
