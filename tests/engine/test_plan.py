"""What Spark is asked to do: the columns that it reads, and how it joins."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import pytest

from spark_jobs.contract.statements import MergeCase
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.runtime.session import fixed_settings
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.connectors import COPY_ON_WRITE
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS
from tests.engine.plans import planned

pytestmark = pytest.mark.slow

_SOURCE = "VALUES (101, 'x', 'a', 1, true) AS s(id, v, p, n, unused)"
_INSERT = insert(id="s.id", req="'r'")

MATCHED = matched(update(v="s.v"))
NOT_MATCHED = not_matched(_INSERT)
BY_SOURCE = by_source(delete(), "t.n = 1")


def statement(*clauses: MergeCase, on: str = "t.id = s.id") -> Behaviour:
    return Behaviour("", _SOURCE, clauses, on=on)


def is_source(columns: Collection[str]) -> bool:
    """Whether a scan reads the source, whose stored columns have numbers for names."""
    return all(re.fullmatch(r"c\d+", name) for name in columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clauses", "columns"),
    [
        ((MATCHED,), {"id"}),
        ((matched(delete()), NOT_MATCHED), {"id"}),
        ((matched(update(v="concat(t.v, s.v)"), "t.n > 1"),), {"id", "v", "n"}),
        ((by_source(update(n="k"), "p = 'a'"),), {"id", "k", "p"}),
        ((matched(update(p="s.p")),), {"id", "k", "v", "n", "req"}),
        ((NOT_MATCHED,), {"id"}),
    ],
)
@pytest.mark.parametrize("connector", COPY_ON_WRITE)
def test_only_the_columns_that_clauses_use_are_read(
    connector: str,
    clauses: tuple[MergeCase, ...],
    columns: set[str],
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table(connector, ORDERS, partitioned=True)

    plan, _ = planned(statement(*clauses), harness, monkeypatch, PlanLimits(filter_share=0.0))

    read = [
        re.findall(r"(\w+):", schema) for schema in re.findall(r"ReadSchema: struct<(.*)>", plan)
    ]
    # The scan makes the row id from the position in the file.
    of_target = [{*names} - {"_tmp_metadata_row_index"} for names in read if not is_source(names)]
    assert of_target
    assert all(names == columns for names in of_target)
    of_source = [set(names) for names in read if is_source(names)]
    assert all(len(names) <= 4 for names in of_source), "the unused column is not read"


@pytest.mark.parametrize(
    ("clauses", "broadcast_limit", "joins"),
    [
        ((MATCHED,), 10**6, ["BroadcastHashJoin Inner", "BroadcastHashJoin LeftSemi"]),
        ((MATCHED,), 0, ["SortMergeJoin Inner"]),
        ((NOT_MATCHED,), 0, ["SortMergeJoin LeftAnti"]),
        ((MATCHED, NOT_MATCHED), 0, ["SortMergeJoin LeftOuter"]),
        ((MATCHED, NOT_MATCHED), 10**6, ["SortMergeJoin LeftOuter", "BroadcastHashJoin LeftSemi"]),
        ((MATCHED, BY_SOURCE), 10**6, ["BroadcastHashJoin LeftOuter"]),
        ((BY_SOURCE,), 0, ["SortMergeJoin LeftOuter"]),
        ((NOT_MATCHED, BY_SOURCE), 10**6, ["SortMergeJoin FullOuter"]),
    ],
)
def test_the_join_follows_from_the_clauses(
    clauses: tuple[MergeCase, ...],
    broadcast_limit: int,
    joins: list[str],
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)

    # Spark would broadcast tables this small by itself.
    with fixed_settings(harness.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        plan, _ = planned(
            statement(*clauses),
            harness,
            monkeypatch,
            PlanLimits(broadcast_limit, filter_share=0.0),
        )

    found = [
        f"{name} {kind}"
        for name, kind in re.findall(
            r"(\w+Join)\b.*?, (Inner|LeftOuter|RightOuter|FullOuter|LeftAnti|LeftSemi)", plan
        )
    ]
    assert found == joins


@pytest.mark.parametrize(
    ("clauses", "joins"),
    [
        ((MATCHED,), ["BroadcastHashJoin Inner"]),
        ((MATCHED, NOT_MATCHED), ["SortMergeJoin LeftOuter"]),
        ((NOT_MATCHED,), ["SortMergeJoin LeftAnti"]),
    ],
)
def test_a_dynamic_filter_takes_the_place_of_the_semi_join(
    clauses: tuple[MergeCase, ...],
    joins: list[str],
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)

    with fixed_settings(harness.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        limits = PlanLimits(filter_share=1000.0)
        plan, _ = planned(statement(*clauses), harness, monkeypatch, limits)

    found = [" ".join(each) for each in re.findall(r"(\w+Join)\b.*?, (Inner|Left\w+)", plan)]
    assert found == joins
    assert "MapInArrow" in plan


@pytest.mark.parametrize(
    ("clauses", "limits"),
    [
        ((MATCHED,), PlanLimits(filter_share=0.0)),
        ((MATCHED,), PlanLimits(0, filter_share=1000.0)),
        ((MATCHED, BY_SOURCE), PlanLimits(filter_share=1000.0)),
    ],
)
def test_without_a_dynamic_filter_spark_reads_the_files(
    clauses: tuple[MergeCase, ...],
    limits: PlanLimits,
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)

    plan, _ = planned(statement(*clauses), harness, monkeypatch, limits)

    assert "MapInArrow" not in plan


# All columns but the assigned one, whose old value nobody needs.
OTHERS = {"id", "k", "n", "req", "p"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clauses", "joins", "columns"),
    [
        ((MATCHED,), ["Inner"], [OTHERS]),
        ((MATCHED, NOT_MATCHED), ["Inner", "LeftAnti"], [OTHERS, {"id"}]),
        ((matched(delete()), NOT_MATCHED), ["LeftOuter"], [{"id"}]),
        ((MATCHED, BY_SOURCE), ["LeftOuter"], [OTHERS]),
        ((MATCHED, NOT_MATCHED, BY_SOURCE), ["FullOuter"], [OTHERS]),
    ],
)
def test_where_rows_are_written_anew_no_outer_join_takes_whole_rows_without_need(
    clauses: tuple[MergeCase, ...],
    joins: list[str],
    columns: list[set[str]],
    make_table: Callable[..., Harness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = make_table("folder-moving", ORDERS, partitioned=True)

    with fixed_settings(harness.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        plan, _ = planned(statement(*clauses), harness, monkeypatch, PlanLimits(broadcast=0))

    kinds = r"SortMergeJoin\b.*?, (Inner|LeftOuter|RightOuter|FullOuter|LeftAnti)"
    assert re.findall(kinds, plan) == joins
    read = [
        set(re.findall(r"(\w+):", schema)) - {"_tmp_metadata_row_index"}
        for schema in re.findall(r"ReadSchema: struct<(.*)>", plan)
    ]
    assert [names for names in read if not is_source(names)] == columns
