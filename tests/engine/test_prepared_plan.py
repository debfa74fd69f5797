"""The prepared plan: no target row goes through Spark, the outcome is that of the general plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spark_jobs.contract.statements import MergeCase
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    insert_all,
    matched,
    not_matched,
    update,
)
from tests.conformance.conftest import MakeTable
from tests.conformance.tables import NESTED, ORDERS
from tests.engine.outcomes import run, same_outcome

pytestmark = pytest.mark.slow

PREPARED = PlanLimits(plan="prepared")

_VALUES = """
    (101, 101, 'a', DATE'2020-01-01', 1), (102, 999, 'b', DATE'1500-01-01', 2),
    (103, NULL, NULL, NULL, 3), (NULL, 104, 'd', DATE'2020-01-01', 4),
    (105, 105, 'e', NULL, 5), (205, 205, 'a ', NULL, 6), (3000000000, 7, 'f', NULL, 7)
"""
_SOURCE = f"VALUES {_VALUES} AS s(id, k, v, d, n)"
_NEW = insert(id="coalesce(s.id, -1)", v="s.v", n="s.n", req="'r'", p="'a'")
_MIXED = (
    matched(delete(), "s.n = 1"),
    matched(update(v="concat(s.v, year(s.d))", n="7L"), "s.n <> 5"),
    not_matched(_NEW, "s.n < 7"),
)

STATEMENTS = {
    "update": Behaviour("", _SOURCE, (matched(update(v="s.v", n="s.n + 1")),)),
    "mixed": Behaviour("", _SOURCE, _MIXED),
    "mixed, strict": replace(Behaviour("", _SOURCE, _MIXED), cardinality="strict"),
    "two updates": Behaviour(
        "",
        _SOURCE,
        (matched(update(v="s.v"), "s.n < 3"), matched(update(n="s.n", req="coalesce(s.k, 0)"))),
    ),
    "insert": Behaviour("", _SOURCE, (not_matched(_NEW),)),
    "copies": Behaviour(
        "", _SOURCE, (matched(update(v="s.v", n="s.n", k="s.k")), not_matched(_NEW))
    ),
    "delete": Behaviour("", _SOURCE, (matched(delete()),)),
    "NULL": Behaviour("", _SOURCE, (matched(update(v="NULL", n="CAST(NULL AS INT)")),)),
    "several keys": Behaviour(
        "",
        _SOURCE,
        (matched(update(v="'both'")), not_matched(_NEW)),
        on="t.id = s.id AND t.k = s.k",
    ),
    "one column twice": Behaviour(
        "", _SOURCE, (matched(update(v="'both'")),), on="t.k = s.k AND t.k = s.id"
    ),
    "out of range": Behaviour(
        "", _SOURCE, (matched(update(v="'x'")), not_matched(_NEW)), on="t.k = s.id"
    ),
    "expression": Behaviour(
        "", _SOURCE, (matched(delete()), not_matched(_NEW)), on="s.k + 1 = t.k"
    ),
    "text": Behaviour(
        "", "VALUES ('v101'), ('V102'), ('v103 ') AS s(v)", (matched(delete()),), on="t.v = s.v"
    ),
    "a map": Behaviour(
        "",
        "VALUES (101, map('a', 1), 'x'), (9, NULL, 'y') AS s(id, m, v)",
        (matched(update(v="s.m['a']")), not_matched(insert(id="s.id", req="s.v", n="s.m['b']"))),
    ),
    "nested": Behaviour(
        "",
        "VALUES (11, struct(1 AS zip, 'c' AS city), map('k', 1), array('x', NULL), 'x'), "
        "(99, NULL, NULL, NULL, 'y') AS s(id, info, attrs, tags, p)",
        (
            matched(update(info="s.info", attrs="s.attrs", tags="s.tags")),
            not_matched(insert(id="s.id", info="s.info", attrs="s.attrs", tags="s.tags")),
        ),
        table=NESTED,
    ),
    "every row deleted twice": Behaviour(
        "", "(SELECT 101 AS id FROM range(3000))", (matched(delete()),)
    ),
    "repeated without effect": Behaviour(
        "",
        "VALUES (101, 1), (101, 2), (101, 3) AS s(id, n)",
        (matched(update(n="s.n"), "s.n = 2"),),
    ),
    "no file": Behaviour(
        "",
        "VALUES (9, 'x') AS s(id, v)",
        (matched(delete()), not_matched(insert(id="s.id", req="s.v"))),
    ),
    "a value of a row that is not inserted": Behaviour(
        "",
        "VALUES (101, '1'), (102, 'x'), (9999, '3') AS s(id, number)",
        (
            matched(delete()),
            not_matched(insert(id="s.id", req="'r'", n="CAST(s.number AS INT)")),
        ),
    ),
    "INSERT of constants": Behaviour(
        "",
        "VALUES (101), (9), (NULL), (10) AS s(id)",
        (not_matched(insert(id="7L", req="'r'", p="'a'")),),
    ),
    "DELETE, INSERT of constants": Behaviour(
        "",
        "VALUES (101), (9), (NULL), (10) AS s(id)",
        (matched(delete()), not_matched(insert(id="7L", req="'r'", p="'a'"))),
    ),
    "INSERT *": Behaviour(
        "",
        "VALUES (101, 5, 'x', 1, 'y', 'a'), (9, 6, 'n', 2, 'z', 'b') AS s(id, k, v, n, req, p)",
        (not_matched(insert_all()),),
    ),
}
FAILING = {
    "repeated": Behaviour("", "VALUES (101), (101), (102) AS s(id)", (matched(update(v="'x'")),)),
    "repeated in one clause": Behaviour(
        "",
        "VALUES (101, 1), (101, 2), (101, 3) AS s(id, n)",
        (matched(update(n="s.n"), "s.n >= 2"),),
    ),
    "strict": replace(
        Behaviour(
            "", "VALUES (101, 1), (101, 2) AS s(id, n)", (matched(update(v="'x'"), "s.n = 1"),)
        ),
        cardinality="strict",
    ),
    "NULL": Behaviour(
        "", "VALUES (101, NULL), (1, 'x') AS s(id, v)", (matched(update(req="s.v")),)
    ),
    "NULL of a new row": Behaviour(
        "", "VALUES (1) AS s(id)", (not_matched(insert(id="s.id", req="CAST(NULL AS STRING)")),)
    ),
}
_NUMBERS = "VALUES (101, '1'), (102, 'x'), (9999, 'y') AS s(id, number)"
_LONG = "repeat('x', 1000)"
# Values that cannot be computed on some row of the source.
LAZY = {
    "row without a match": (
        "VALUES (101, '1'), (9999, 'y') AS s(id, number)",
        (matched(update(n="CAST(s.number AS INT)")),),
        "committed",
    ),
    "store assignment": (
        "VALUES (101, '1'), (9999, 'y') AS s(id, number)",
        (matched(update(n="s.number")),),
        "committed",
    ),
    "condition": (
        "VALUES (101, 1), (9999, 0) AS s(id, n)",
        (matched(delete(), "1 / s.n > 0"),),
        "committed",
    ),
    "row that takes effect": (_NUMBERS, (matched(update(n="CAST(s.number AS INT)")),), "failed"),
    "stored row": (_NUMBERS, (matched(update(n="s.number")),), "failed"),
}


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("kind", ["append-cow", "append-dv"])
@pytest.mark.parametrize("name", [*STATEMENTS, *FAILING])
def test_the_outcome_is_that_of_the_general_plan(
    name: str, kind: str, make_table: MakeTable
) -> None:
    behaviour = {**STATEMENTS, **FAILING}[name]

    status, plans = same_outcome(behaviour, kind, make_table, "join", "prepared")

    assert status == ("failed" if name in FAILING else "committed")
    assert name in FAILING or plans[1] == "prepared: it is asked for"


@pytest.mark.parametrize("name", LAZY)
def test_errors_of_rows_without_effect_do_not_matter(name: str, make_table: MakeTable) -> None:
    source, clauses, expected = LAZY[name]
    behaviour = Behaviour("", source, clauses)

    status, plans = same_outcome(behaviour, "append-cow", make_table, "join", "prepared")

    assert status == expected
    reason = "located: a clause fails on a row of the source"
    assert plans[1] == (reason if expected == "committed" else "")


@pytest.mark.parametrize(
    ("clauses", "on", "reason"),
    [
        ((matched(update(n="t.n + 1")),), "t.id = s.id", "reads columns of the target"),
        ((matched(delete(), "t.n > 1"),), "t.id = s.id", "reads columns of the target"),
        ((matched(delete()),), "t.id = s.id AND t.n > 1", "more than equalities"),
        ((matched(delete()),), "t.id = s.id AND s.id > 1", "more than equalities"),
        ((matched(delete()),), "t.id = s.id AND t.v <=> 'v101'", "more than equalities"),
        ((matched(update(v="rand()")),), "t.id = s.id", "not deterministic"),
    ],
)
def test_a_plan_that_cannot_run_is_an_error(
    clauses: Sequence[MergeCase], on: str, reason: str, make_table: MakeTable
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    behaviour = Behaviour("", "VALUES (101) AS s(id)", tuple(clauses), on=on)

    result = run(behaviour, harness, PREPARED)

    assert result.error is not None
    assert result.error.code == ErrorCode.NOT_SUPPORTED.name
    assert reason in result.error.message


@pytest.mark.parametrize(
    ("source", "clause", "plan"),
    [
        ("VALUES (101, 'x') AS s(id, v)", matched(update(v="s.v")), "prepared"),
        ("VALUES (101, 'x') AS s(id, v)", matched(update(v="t.v")), "located"),
        ("VALUES (101, 'x') AS s(id, v)", by_source(delete()), "join"),
        ("(SELECT id, 'x' AS v FROM range(90, 390))", matched(update(v="upper(s.v)")), "join"),
        ("(SELECT id, 'x' AS v FROM range(90, 390))", matched(update(v="s.v")), "prepared"),
        ("(SELECT id, 'x' AS v FROM range(90, 9000))", matched(update(v="s.v")), "join"),
        (f"(SELECT id, {_LONG} AS v FROM range(90, 390))", matched(update(v="s.v")), "join"),
    ],
)
def test_the_plan_suits_the_statement(
    source: str, clause: MergeCase, plan: str, make_table: MakeTable
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    limits = PlanLimits(located_share=0.25, copied=100_000, copied_share=100.0)

    result = run(Behaviour("", source, (clause,)), harness, limits)

    assert result.error is None, result.error
    assert result.metrics.plan.startswith(f"{plan}: ")


def test_a_part_of_a_column_is_not_looked_up(make_table: MakeTable) -> None:
    on = "t.attrs['a'] = s.number"
    behaviour = Behaviour("", "VALUES (13) AS s(number)", (matched(delete()),), on, NESTED)
    harness = make_table("append-cow", NESTED, partitioned=True)

    result = run(behaviour, harness, PlanLimits(filter_share=1000.0, located_share=1000.0))

    assert result.error is None, result.error
    reason = "join: ON compares no columns whose values can be looked up"
    assert (result.metrics.deleted, result.metrics.plan) == (1, reason)
