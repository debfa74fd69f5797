"""DEFAULT as a value, and columns that INSERT leaves out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_jobs.engine.job import Job
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
