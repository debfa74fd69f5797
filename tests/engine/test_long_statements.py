"""The driver walks over no constants of a statement: each step would be a call to the JVM."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import JobRequest
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET
from tests.conformance.tables import ORDERS
from tests.support.statement_cost import counted

pytestmark = pytest.mark.slow

_USING = f"MERGE INTO {TARGET} t USING (SELECT 101L AS id, 'x' AS v) s ON t.id = s.id"
STATEMENTS = {
    "IN in WHERE": f"DELETE FROM {TARGET} WHERE id IN ({{0}})",
    "NOT IN in WHERE": f"DELETE FROM {TARGET} WHERE id < 102 AND id NOT IN ({{0}})",
    "IN in SET": f"UPDATE {TARGET} SET n = IF(id IN ({{0}}), 1, 2)",
    "IN in ON": f"{_USING} AND t.k IN ({{0}}) WHEN MATCHED THEN DELETE",
    "IN in a clause": f"{_USING} WHEN MATCHED AND t.v IN ({{1}}) THEN UPDATE SET v = s.v",
}


def calls(make_table: MakeTable, text: str, count: int) -> int:
    """The calls to the JVM of a statement with ``count`` constants."""
    harness = make_table("folder", ORDERS, partitioned=True)
    numbers = ", ".join(map(str, range(count)))
    texts = ", ".join(f"'v{number}'" for number in range(count))
    terms = " OR ".join(f"(id = {number} AND v = 'x')" for number in range(count))
    parsed = parse_statement(text.format(numbers, texts, terms))
    request = JobRequest("one", TARGET, harness.catalog, parsed.statement, parsed.sources)
    with counted(harness.spark) as found:
        result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return found.calls


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
def test_constants_cost_no_calls(make_table: MakeTable, text: str) -> None:
    calls(make_table, text, 600)  # what is looked up once

    few, many = calls(make_table, text, 600), calls(make_table, text, 1_800)

    assert many <= few + 100


def test_terms_cost_few_calls(make_table: MakeTable) -> None:
    text = f"DELETE FROM {TARGET} WHERE {{2}}"
    calls(make_table, text, 400)  # what is looked up once

    few, many = calls(make_table, text, 400), calls(make_table, text, 800)

    assert many - few <= 25 * 400
