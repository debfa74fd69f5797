"""The located plan: one stage without a shuffle, the same outcome as the general plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_jobs.contract.statements import MergeCase
from spark_jobs.engine.merge import located_plan, physical_plan, source_rows
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    delete_from,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.conftest import MakeTable
from tests.conformance.tables import ORDERS
from tests.engine.outcomes import run, same_outcome

pytestmark = pytest.mark.slow

LOCATED = PlanLimits(plan="located")

_VALUES = """
    (101, 101, 'a', DATE'2020-01-01', 1), (102, 999, 'b', DATE'1500-01-01', 2),
    (103, NULL, NULL, NULL, 3), (NULL, 104, 'd', DATE'2020-01-01', 4),
    (105, 105, 'e', NULL, 5), (205, 205, 'a ', NULL, 6), (3000000000, 7, 'f', NULL, 7)
"""
_SOURCE = f"VALUES {_VALUES} AS s(id, k, v, d, n)"
_NEW = insert(id="coalesce(s.id, -1)", v="s.v", n="s.n", req="'r'", p="'a'")

STATEMENTS = {
    "update": Behaviour("", _SOURCE, (matched(update(v="s.v", n="t.n + s.n")),)),
    "mixed": Behaviour(
        "",
        _SOURCE,
        (
            matched(delete(), "s.n = 1"),
            matched(update(v="concat(t.v, t.p)"), "t.n <> 5"),
            not_matched(_NEW, "s.n < 7"),
        ),
    ),
    "insert": Behaviour("", _SOURCE, (not_matched(_NEW),), on="t.id = s.id AND t.n > 1"),
    "several keys": Behaviour(
        "",
        _SOURCE,
        (matched(update(v="'both'")), not_matched(_NEW)),
        on="t.id = s.id AND t.k = s.k AND s.n > 0",
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
    "struct": Behaviour(
        "",
        "VALUES (101, struct(1 AS a, array('x', NULL) AS b)), (9, NULL) AS s(id, st)",
        (matched(update(v="s.st.b[0]")), not_matched(insert(id="s.id", req="'r'", n="s.st.a"))),
    ),
    "every row deleted twice": Behaviour(
        "", "(SELECT 101 AS id FROM range(3000))", (matched(delete()),), on="t.id = s.id"
    ),
    "lazy errors": Behaviour(
        "",
        "VALUES (101, '1'), (102, 'x'), (9999, 'y') AS s(id, number)",
        (matched(update(n="CAST(s.number AS INT)"), "t.id = 101"), matched(update(n="1"))),
    ),
}
FAILING = {
    "repeated": Behaviour("", "VALUES (101), (101), (102) AS s(id)", (matched(update(v="'x'")),)),
    "strict": replace(
        Behaviour(
            "", "VALUES (101, 1), (101, 2) AS s(id, n)", (matched(update(v="'x'"), "s.n = 1"),)
        ),
        cardinality="strict",
    ),
    "cast": Behaviour(
        "", "VALUES (101, 'x') AS s(id, v)", (matched(update(n="CAST(s.v AS INT)")),)
    ),
    "NULL": Behaviour(
        "", "VALUES (101, NULL), (1, 'x') AS s(id, v)", (matched(update(req="s.v")),)
    ),
    "NULL of a new row": Behaviour(
        "", "VALUES (1) AS s(id)", (not_matched(insert(id="s.id", req="CAST(NULL AS STRING)")),)
    ),
}


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("kind", ["append-cow", "append-dv"])
@pytest.mark.parametrize("name", [*STATEMENTS, *FAILING])
def test_the_outcome_is_that_of_the_general_plan(
    name: str, kind: str, make_table: MakeTable
) -> None:
    behaviour = {**STATEMENTS, **FAILING}[name]

    status, plans = same_outcome(behaviour, kind, make_table, "join", "located")

    assert status == ("failed" if name in FAILING else "committed")
    assert name in FAILING or plans[1] == "located: it is asked for"


@pytest.mark.parametrize(
    ("clauses", "on", "reason"),
    [
        ((by_source(delete()),), "t.id = s.id", "NOT MATCHED BY SOURCE"),
        ((matched(update(p="'a'")),), "t.id = s.id", "decide where a row is stored"),
        ((matched(update(v="rand()")),), "t.id = s.id", "not deterministic"),
        ((matched(delete()),), "t.id < s.id", "compares no columns"),
    ],
)
def test_a_plan_that_cannot_run_is_an_error(
    clauses: Sequence[MergeCase], on: str, reason: str, make_table: MakeTable
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    behaviour = Behaviour("", "VALUES (101) AS s(id)", tuple(clauses), on=on)

    result = run(behaviour, harness, LOCATED)

    assert result.error is not None
    assert (result.error.code, reason in result.error.message) == (
        ErrorCode.NOT_SUPPORTED.name,
        True,
    )
    choice = run(behaviour, harness, PlanLimits(located_share=1000.0))
    assert choice.metrics.plan.startswith("join: ")
    assert reason in choice.metrics.plan


def test_connectors_without_such_a_plan(make_table: MakeTable) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)

    result = run(STATEMENTS["update"], harness, LOCATED)

    assert result.error is not None
    assert result.error.code == ErrorCode.NOT_SUPPORTED.name
    no_source = run(delete_from("", "id = 101"), harness, LOCATED)
    assert no_source.error is not None
    assert "no source" in no_source.error.message
    chosen = run(STATEMENTS["update"], harness, PlanLimits(located_share=1000.0))
    assert chosen.metrics.plan.startswith("join: ")


def test_a_source_that_the_driver_cannot_read_is_joined(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if its rows were larger than spark.driver.maxResultSize.
    def too_large(*arguments: object) -> None:
        raise PySparkException("Total size of serialized results is too large")

    monkeypatch.setattr(physical_plan, "source_rows", too_large)
    harness = make_table("append-cow", ORDERS, partitioned=True)

    result = run(STATEMENTS["update"], harness, PlanLimits(located_share=1000.0))

    assert result.error is None, result.error
    assert result.metrics.updated == 5
    assert result.metrics.plan == "join: the driver cannot read the source's rows"


def test_a_source_whose_texts_are_larger_than_estimated_is_joined(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first rows of a Parquet file are short, and a dictionary has the long ones.
    monkeypatch.setattr(source_rows, "MOST_ARRAY_BYTES", 10)
    harness = make_table("append-cow", ORDERS, partitioned=True)

    result = run(STATEMENTS["update"], harness, PlanLimits(located_share=1000.0))

    assert result.error is None, result.error
    assert result.metrics.updated == 5
    assert result.metrics.plan == "join: the driver cannot read the source's rows"
    other = make_table("append-cow", ORDERS, partitioned=True)
    forced = run(STATEMENTS["update"], other, PlanLimits(plan="prepared"))
    assert forced.error is not None
    assert forced.error.code == ErrorCode.NOT_SUPPORTED.name


def test_one_stage_reads_and_changes_the_files(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_table("append-dv", ORDERS, partitioned=True)
    plans = []

    def look(frame: DataFrame) -> DataFrame:
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return by_position(frame)

    monkeypatch.setattr(located_plan, "by_position", look)

    result = run(STATEMENTS["update"], harness, LOCATED)

    assert result.error is None
    (plan,) = plans
    assert plan.count("MapInArrow") == 1
    assert "Exchange" not in plan
    assert "Join" not in plan
