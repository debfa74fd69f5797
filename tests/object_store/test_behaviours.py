"""Tables on an object store behave as those in a folder do: behaviours that cover the most.

A run takes half of those of each kind of statement, another half with ``MERGE_TESTS_TURN=1``; `make
test-all` runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import check
from tests.conformance.seeds import Seeds
from tests.engine.outcomes import run
from tests.object_store.s3_harness import S3Harness
from tests.support.forced_plans import Forced, forced_plan
from tests.support.stores import ObjectStore
from tests.support.table_kinds import APPEND_COW, APPEND_DV, TableKind
from tests.support.turns import EVERYTHING, has_turn

KINDS = {kind.name: kind for kind in (APPEND_COW, APPEND_DV)}
_BOTH = ("all kinds of clauses together",)


def _cases() -> Iterator[object]:
    chosen = {*_BOTH, *_whose_turn_it_is()}
    for behaviour in BEHAVIOURS:
        for name, kind in KINDS.items():
            is_chosen = behaviour.name in chosen and (kind is APPEND_DV or behaviour.name in _BOTH)
            if EVERYTHING or is_chosen:
                yield pytest.param(behaviour, kind, id=f"{behaviour}-{name}")


def _whose_turn_it_is() -> Iterator[str]:
    """Names of half of the smoke tests, but never of none with one kind of statement."""
    by_statement: dict[type, list[str]] = {}
    for behaviour in BEHAVIOURS:
        if behaviour.smoke:
            by_statement.setdefault(type(behaviour.statement), []).append(behaviour.name)
    for names in by_statement.values():
        parts = min(2, len(names))
        yield from (name for number, name in enumerate(names) if has_turn(number, parts))


@pytest.fixture(scope="module")
def seeds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds(spark, tmp_path_factory)


@pytest.mark.parametrize(("behaviour", "kind"), list(_cases()))
def test_behaviour(
    behaviour: Behaviour,
    kind: TableKind,
    gateway: ObjectStore,
    spark: SparkSession,
    seeds: Seeds,
    tmp_path: Path,
) -> None:
    warehouse = tmp_path / "warehouse"
    seeds.copy(behaviour, kind, warehouse)

    check(behaviour, S3Harness(spark, warehouse, partitioned=True, kind=kind, store=gateway))


@pytest.mark.parametrize("plan", ["located", "prepared"])
def test_tasks_find_the_source_in_the_store(
    plan: Forced, gateway: ObjectStore, spark: SparkSession, seeds: Seeds, tmp_path: Path
) -> None:
    clauses = (matched(update(v="s.v")), not_matched(insert(id="s.id", v="s.v", req="'r'")))
    behaviour = Behaviour("", "VALUES (101, 'x'), (9, 'y') AS s(id, v)", clauses)
    warehouse = tmp_path / "warehouse"
    seeds.copy(behaviour, APPEND_COW, warehouse)
    harness = S3Harness(spark, warehouse, partitioned=True, kind=APPEND_COW, store=gateway)

    with forced_plan(plan) as tally:
        result = run(behaviour, harness, PlanLimits())

    assert (result.error, tally.ran) == (None, 1)
    assert (result.metrics.updated, result.metrics.inserted) == (1, 1)
    values = {row["id"]: row["v"] for row in harness.state().rows}
    assert (values[101], values[9]) == ("x", "y")
