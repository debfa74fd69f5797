"""What an expression raises stops its statement, also one whose value has no type (VOID)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.query_job import QueryJob
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

pytestmark = pytest.mark.slow

_STOP = "raise_error('stop')"
_SOURCE = "(SELECT 101L AS id, {} AS v UNION ALL SELECT 1L, 'x')"
_MERGE = f"MERGE INTO {TARGET} t USING "
_SAME = _MERGE + "(SELECT id, 'x' AS v FROM VALUES (101L), (1L) AS s(id)) s ON t.id = s.id "

STATEMENTS = {
    "SET": f"UPDATE {TARGET} SET v = {_STOP}",
    "SET a number": f"UPDATE {TARGET} SET n = {_STOP} WHERE id = 101",
    "SET a typed value": f"UPDATE {TARGET} SET n = CAST({_STOP} AS INT)",
    "SET a CASE": f"UPDATE {TARGET} SET v = CASE WHEN id = 101 THEN {_STOP} END",
    "SET a check": f"UPDATE {TARGET} SET v = assert_true(id < 300, 'stop')",
    "SET NOT NULL": f"UPDATE {TARGET} SET req = {_STOP}",
    "SET a partition column": f"UPDATE {TARGET} SET p = {_STOP}",
    "SET a subquery": f"UPDATE {TARGET} SET v = (SELECT {_STOP})",
    "WHERE": f"DELETE FROM {TARGET} WHERE {_STOP}",
    "WHERE with AND": f"DELETE FROM {TARGET} WHERE id > 100 AND {_STOP}",
    "WHERE on partitions": f"DELETE FROM {TARGET} WHERE p = 'a' AND {_STOP}",
    "WHERE with NOT": f"UPDATE {TARGET} SET v = 'x' WHERE NOT {_STOP}",
    "WHERE with IN": f"DELETE FROM {TARGET} WHERE id IN (SELECT {_STOP})",
    "WHERE a check": f"DELETE FROM {TARGET} WHERE assert_true(false, 'stop') IS NULL",
    "INSERT a query": f"INSERT INTO {TARGET} SELECT 1, 1, {_STOP}, 1, 'r', 'a'",
    "INSERT a key": f"INSERT INTO {TARGET} SELECT {_STOP}, 1, 'v', 1, 'r', 'a'",
    "INSERT a CASE": f"INSERT INTO {TARGET} SELECT 1, CASE WHEN true THEN {_STOP} END, 'v', 1,"
    " 'r', 'a'",
    "INSERT a partition": f"INSERT INTO {TARGET} PARTITION (p = {_STOP}) SELECT 1, 1, 'v', 1, 'r'",
    "INSERT OVERWRITE": f"INSERT OVERWRITE {TARGET} SELECT 1, 1, {_STOP}, 1, 'r', 'a'",
    "INSERT an ordered query": f"INSERT OVERWRITE {TARGET} SELECT id, 1, {_STOP}, 1, 'r', 'a'"
    " FROM range(3) ORDER BY id",
    "DROP PARTITION": f"ALTER TABLE {TARGET} DROP PARTITION (p = {_STOP})",
}
MERGES = {
    "source value": _MERGE + f"(SELECT id, {_STOP} AS v FROM VALUES (101L), (1L) AS x(id)) s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
    "source key": _MERGE + f"(SELECT {_STOP} AS id, 'v' AS v) s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
    "source CASE": _MERGE + f"(SELECT 1 AS id, CASE WHEN true THEN {_STOP} END AS v) s ON"
    " t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v, req, p) VALUES (s.id, s.v, 'r', 'a')",
    "source of nested values": _MERGE + f"(SELECT 101L AS id, named_struct('v', {_STOP}) AS s) s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.s.v",
    "SET": _SAME + f"WHEN MATCHED THEN UPDATE SET v = {_STOP}",
    "SET what the row has": _SAME + f"WHEN MATCHED THEN UPDATE SET v = IF(t.id > 0, {_STOP}, NULL)",
    "INSERT": _SAME
    + f"WHEN NOT MATCHED THEN INSERT (id, v, req, p) VALUES (s.id, {_STOP}, 'r', 'a')",
    "condition": _SAME + f"WHEN MATCHED AND {_STOP} THEN DELETE",
    "condition of INSERT": _SAME
    + f"WHEN NOT MATCHED AND {_STOP} THEN INSERT (id, req, p) VALUES (s.id, 'r', 'a')",
    "condition in ON": f"MERGE INTO {TARGET} t USING (SELECT 101L AS id) s"
    f" ON t.id = s.id AND {_STOP} WHEN MATCHED THEN DELETE",
    "BY SOURCE": _SAME + f"WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = {_STOP}",
}


def run(harness: Harness, text: str, limits: PlanLimits) -> JobResult:
    parsed = parse_statement(text)
    request = JobRequest("one", TARGET, harness.catalog, parsed.statement, parsed.sources)
    return Job(request, harness.spark, harness.open(), limits=limits).run()


def require_stopped(harness: Harness, text: str, limits: PlanLimits | None = None) -> None:
    """The statement fails for what it raises, and changes nothing."""
    before = harness.state()

    error = run(harness, text, limits or PlanLimits()).error

    assert error is not None
    assert (error.code, error.retryable, "stop" in error.message) == (
        "EXPRESSION_FAILED",
        False,
        True,
    ), error
    assert replace(harness.state(), operations=before.operations) == before


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
def test_what_a_statement_raises(make_table: MakeTable, text: str) -> None:
    require_stopped(make_table("folder", ORDERS, partitioned=True), text)


@pytest.mark.parametrize("text", MERGES.values(), ids=MERGES)
@pytest.mark.parametrize("plan", ["join", None])
def test_what_a_merge_raises(make_table: MakeTable, text: str, plan: Plan | None) -> None:
    kind = "folder" if plan else "append-dv"
    require_stopped(make_table(kind, ORDERS, partitioned=True), text, PlanLimits(plan=plan))


@pytest.mark.parametrize("name", ["SET", "INSERT", "condition", "condition of INSERT"])
@pytest.mark.parametrize("plan", ["located", "prepared"])
def test_what_a_merge_raises_without_a_join(make_table: MakeTable, name: str, plan: Plan) -> None:
    table = make_table("append-dv", ORDERS, partitioned=True)

    require_stopped(table, MERGES[name], PlanLimits(plan=plan))


def test_what_a_default_raises(make_table: MakeTable) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    path = harness.warehouse / TARGET.database / TARGET.table / "schema.json"
    schema = json.loads(path.read_text())
    for column in schema["columns"]:
        column["default"] = _STOP if column["name"] == "v" else None
    path.write_text(json.dumps(schema))

    require_stopped(harness, f"INSERT INTO {TARGET} (id, req, p) VALUES (1, 'r', 'a')")


def test_what_a_query_raises(make_table: MakeTable, tmp_path: object) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    for output in ({}, {"output_path": f"{tmp_path}/rows"}):
        spec = QuerySpec("q", **output)
        source = SqlSource("q", f"SELECT 1 AS id, {_STOP} AS v")
        request = JobRequest("q1", None, harness.catalog, spec, (source,), JobOptions())

        error = QueryJob(request, harness.spark, harness.open()).run().error

        assert error is not None
        assert (error.code, "stop" in error.message) == ("EXPRESSION_FAILED", True), error


def test_a_source_column_that_nothing_reads_is_not_evaluated(make_table: MakeTable) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    text = _MERGE + f"(SELECT 101L AS id, {_STOP} AS v) s ON t.id = s.id WHEN MATCHED THEN DELETE"

    assert run(harness, text, PlanLimits()).error is None

    assert 101 not in {row["id"] for row in harness.read()}
