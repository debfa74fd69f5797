"""DEFAULT as a value, and columns that INSERT leaves out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import JobRequest
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import (
    Behaviour,
    insert,
    insert_positional,
    matched,
    not_matched,
    update,
    update_set,
)
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

DEFAULTS = {"v": "'none'", "n": "CAST('7' AS INT)", "req": "upper('q')"}


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    """ORDERS with defaults of some columns."""
    harness = make_table("folder", ORDERS, partitioned=True)
    path = harness.warehouse / TARGET.database / TARGET.table / "schema.json"
    schema = json.loads(path.read_text())
    schema["columns"] = [{**c, "default": DEFAULTS.get(c["name"])} for c in schema["columns"]]
    path.write_text(json.dumps(schema))
    return harness


def rows_after(harness: Harness, behaviour: Behaviour) -> dict[int, list[object]]:
    """``v``, ``n``, ``req`` and ``k`` by ``id``."""
    result = Job(request_of(behaviour, harness), harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return {row["id"]: [row[name] for name in ("v", "n", "req", "k")] for row in harness.read()}


def test_default_in_an_update(harness: Harness) -> None:
    statement = update_set("", {"v": "DEFAULT", "t.n": " default ", "k": "DEFAULT"}, "id = 101")

    assert rows_after(harness, statement)[101] == ["none", 7, "r", None]


@pytest.mark.slow
def test_default_in_a_merge(harness: Harness) -> None:
    statement = Behaviour(
        "",
        "VALUES (101, 1), (1, 2), (2, 3) AS s(id, n)",
        (
            matched(update(n="DEFAULT", v="s.n")),
            not_matched(insert(id="s.id", n="DEFAULT", k="s.n"), "n = 2"),
            not_matched(insert_positional("id", "DEFAULT", "DEFAULT", "n", "DEFAULT", "DEFAULT")),
        ),
    )

    rows = rows_after(harness, statement)

    assert (rows[101], rows[1], rows[2]) == (
        ["1", 7, "r", 101],
        ["none", 7, "Q", 2],
        ["none", 3, "Q", None],
    )


INSERTS = {
    "VALUES": (
        "(id, v, n, req) VALUES (1, DEFAULT, 3, DEFAULT), (2, 'x', DEFAULT, 'y')",
        {1: ["none", 3, "Q", None], 2: ["x", 7, "y", None]},
    ),
    "VALUES without names": (
        "VALUES (1, 1, DEFAULT, DEFAULT, DEFAULT)",
        {1: ["none", 7, "Q", 1]},
    ),
    "VALUES by name": (
        "BY NAME VALUES (1, DEFAULT, 'r'), (2, NULL, DEFAULT) AS s(id, n, req)",
        {1: ["none", 7, "r", None], 2: ["none", None, "Q", None]},
    ),
    "SELECT": (
        "(req, n, id) SELECT DEFAULT, DEFAULT, id + 1 FROM range(2)",
        {1: ["none", 7, "Q", None], 2: ["none", 7, "Q", None]},
    ),
    "SELECT with a star": (
        "(id, k, v, n, req) SELECT *, DEFAULT, DEFAULT, 'r' FROM VALUES (1, 2) AS s(a, b)",
        {1: ["none", 7, "r", 2]},
    ),
    "SELECT by name": (
        "BY NAME SELECT 'r' AS req, DEFAULT AS V, id + 1 AS id FROM range(1)",
        {1: ["none", 7, "r", None]},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "expected"), INSERTS.values(), ids=INSERTS)
def test_default_in_an_insert(
    harness: Harness, rows: str, expected: dict[int, list[object]]
) -> None:
    parsed = parse_statement(f"INSERT INTO {TARGET} PARTITION (p = 'a') {rows}")
    request = JobRequest("one", TARGET, harness.catalog, parsed.statement, parsed.sources)
    before = {row["id"] for row in harness.read()}

    result = Job(request, harness.spark, harness.open()).run()

    assert result.error is None, result.error
    new = [row for row in harness.read() if row["id"] not in before]
    found = {row["id"]: [row[name] for name in ("v", "n", "req", "k")] for row in new}
    assert found == expected


@pytest.mark.slow
def test_default_of_a_column_that_has_none_is_null(harness: Harness) -> None:
    parsed = parse_statement(f"INSERT OVERWRITE {TARGET} (id, k, p) VALUES (1, DEFAULT, 'a')")
    statement = replace(parsed.statement, mode="dynamic")
    request = JobRequest("one", TARGET, harness.catalog, statement, parsed.sources)

    assert Job(request, harness.spark, harness.open()).run().error is None

    (row,) = [row for row in harness.read() if row["p"] == "a"]
    assert (row["id"], row["k"], row["v"], row["req"]) == (1, None, "none", "Q")


@pytest.mark.slow
def test_default_of_a_column_that_needs_a_value(harness: Harness) -> None:
    parsed = parse_statement(f"INSERT INTO {TARGET} PARTITION (p = 'a') (id) VALUES (DEFAULT)")
    request = JobRequest("one", TARGET, harness.catalog, parsed.statement, parsed.sources)
    before = harness.state()

    error = Job(request, harness.spark, harness.open()).run().error

    assert error is not None
    assert (error.code, "column id" in error.message) == ("NOT_NULL_VIOLATION", True)
    assert replace(harness.state(), operations=before.operations) == before


def test_a_default_is_no_expression(harness: Harness) -> None:
    statement = update_set("", {"v": "concat(DEFAULT, 'x')"}, "id = 101")
    before = harness.state()

    result = Job(request_of(statement, harness), harness.spark, harness.open()).run()

    assert result.error is not None
    assert (result.error.code, "default" in result.error.message.lower()) == (
        "COLUMN_NOT_FOUND",
        True,
    )
    assert replace(harness.state(), operations=before.operations) == before
