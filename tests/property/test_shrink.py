"""A chain that fails becomes small, and still fails."""

from __future__ import annotations

import pytest

from tests.oracle.merge import Merge
from tests.oracle.statements import DeleteFrom, UpdateTable
from tests.property.cases import Chain, random_chain
from tests.property.shrink import smallest

SEEDS = range(40)


def chains_with(kind: type) -> list[Chain]:
    chains = [random_chain(seed) for seed in SEEDS]
    return [chain for chain in chains if any(isinstance(s.statement, kind) for s in chain.steps)]


def statements(chain: Chain, kind: type) -> list:
    return [step.statement for step in chain.steps if isinstance(step.statement, kind)]


@pytest.mark.parametrize("kind", [Merge, UpdateTable, DeleteFrom])
def test_one_statement_without_rows_is_left_of_a_failure_of_its_kind(kind):
    chains = chains_with(kind)
    assert len(chains) >= 10
    for chain in chains:
        found = smallest(chain, lambda each: bool(statements(each, kind)), tries=1000)
        (step,) = found.steps
        assert isinstance(step.statement, kind)
        assert (step.source, found.table.commits) == ((), ())


def test_rows_that_matter_stay():
    def fails(chain: Chain) -> bool:
        return any(row["id"] == 7 for row in chain.table.rows) and any(
            row["id"] is None for step in chain.steps for row in step.source
        )

    chains = [chain for chain in map(random_chain, SEEDS) if fails(chain)]
    assert len(chains) >= 5
    for chain in chains:
        found = smallest(chain, fails, tries=1000)
        assert [row["id"] for row in found.table.rows] == [7]
        assert [[row["id"] for row in step.source] for step in found.steps] == [[None]]


def test_clauses_and_their_parts_are_left_out():
    def fails(chain: Chain) -> bool:
        return any("Coalesce" in repr(merge.clauses) for merge in statements(chain, Merge))

    chains = [chain for chain in map(random_chain, SEEDS) if fails(chain)]
    assert len(chains) >= 5
    for chain in chains:
        (step,) = smallest(chain, fails, tries=1000).steps
        (clause,) = step.statement.clauses
        assert len(getattr(clause.action, "assignments", [None])) == 1
        assert repr(step.statement).count("Coalesce") <= 2


def test_it_ends_after_so_many_tries():
    tried = []
    chain = random_chain(1)
    found = smallest(chain, lambda each: bool(tried.append(each)), tries=7)
    assert (found, len(tried)) == (chain, 7)
