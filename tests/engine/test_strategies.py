"""The SQL of docs/strategies.md on a real table: what is replaced, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
_TABLE = SeedTable(
    "lines",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("order_id", "BIGINT"),
        ColumnSpec("line", "INT"),
        ColumnSpec("amount", "INT"),
        ColumnSpec("p", "STRING"),
    ),
    tuple(
        tuple(
            {
                "id": order * 10 + line,
                "order_id": order,
                "line": line,
                "amount": 90 + 10 * line,
                "p": p,
            }
            for line in range(3)
        )
        for order, p in ((1, "a"), (2, "a"), (3, "b"))
    ),
)
Line = tuple[int, int, int]
_WRITTEN: list[Line] = [(order, line, 90 + 10 * line) for order in (1, 2, 3) for line in range(3)]


@pytest.fixture(params=["append-cow", "iceberg-cow"])
def harness(make_table: Callable[..., Harness], request: pytest.FixtureRequest) -> Harness:
    return make_table(request.param, _TABLE, partitioned=False)


def _run(harness: Harness, name: str, lines: list[Line], checks: Guards | None = None) -> JobResult:
    text = re.search(rf"```sql\n-- sql/{name}.sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    parsed = parse_statement(text[1], ["lines"])
    values = ", ".join(map(str, lines))
    query = f"SELECT * FROM VALUES {values} AS v (order_id, line, amount)"
    request = JobRequest(
        name,
        TARGET,
        harness.catalog,
        parsed.statement,
        (SqlSource("lines", query), *parsed.sources),
        guards=checks,
    )
    return Job(request, harness.spark, harness.open()).run()


def _lines(harness: Harness) -> list[Line]:
    return sorted((row["order_id"], row["line"], row["amount"]) for row in harness.read())


def test_delete_and_insert_replaces_whole_orders(harness: Harness) -> None:
    new = [(2, 7, 5), (2, 8, 6), (9, 1, 7), (9, 1, 7)]

    result = _run(harness, "delete_insert", new)

    assert result.error is None, result.error
    assert (result.metrics.deleted, result.metrics.inserted) == (3, 4)
    assert _lines(harness) == sorted([*(each for each in _WRITTEN if each[0] != 2), *new])


def test_replace_where_replaces_what_the_predicate_names(harness: Harness) -> None:
    check = re.search(r'checks=\["(.*?)"\]', PAGE.read_text())
    assert check is not None
    checks = (RowCheck("inside", check[1]), RowCheck("none", "SELECT new.line FROM changes"))
    guards = Guards(max_inserted_rows=Limit(1), checks=checks)
    before = harness.state()

    failed = _run(harness, "replace_where", [(1, 1, 500), (1, 2, 99)], guards)

    assert failed.error is not None
    assert failed.error.code == "GUARD_FAILED"
    for each in ("max_inserted_rows: 2, allowed at most 1", '"amount": 99', "check none: expected"):
        assert each in failed.error.message
    assert failed.error.name == "max_inserted_rows"
    after = harness.state()
    assert (after.rows, after.files, after.on_disk) == (before.rows, before.files, before.on_disk)

    done = _run(harness, "replace_where", [(1, 1, 500)], replace(guards, checks=checks[:1]))

    assert done.error is None, done.error
    kept = [each for each in _WRITTEN if each[2] < 100]
    assert _lines(harness) == sorted([*kept, (1, 1, 500)])
