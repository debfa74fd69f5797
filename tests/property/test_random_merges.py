"""Random MERGE statements on real Paimon tables do what the oracle says.

``MERGE_PROPERTY_TABLES`` sets the number of random tables, with three statements each, and
``MERGE_PROPERTY_SEED`` the first seed: a fixed one, so that every run tries the same. A failure
names the seed of its batch and the smallest case that hypothesis found.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.property.cases import STATEMENTS_PER_TABLE, Chain, chains
from tests.property.runner import Runner

# Within a run hypothesis varies what it tried before; batches of their own keep the mix even.
TABLES_PER_BATCH = 8
TABLES = int(os.environ.get("MERGE_PROPERTY_TABLES", "56"))
QUICK_TABLES = 5
FIRST_SEED = int(os.environ.get("MERGE_PROPERTY_SEED", "20240229"))
BATCHES = range(FIRST_SEED, FIRST_SEED + -(-TABLES // TABLES_PER_BATCH))


def test_a_few_random_statements(runner: Runner) -> None:
    _run(runner, FIRST_SEED - 1, QUICK_TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("number", BATCHES)
def test_random_statements(runner: Runner, number: int) -> None:
    _run(runner, number, TABLES_PER_BATCH)


@pytest.mark.slow
def test_the_statements_met_what_they_should(runner: Runner) -> None:
    """Judges the tests before it: they must not have become harmless."""
    expected = (QUICK_TABLES + len(BATCHES) * TABLES_PER_BATCH) * STATEMENTS_PER_TABLE
    assert runner.census.total >= expected
    runner.census.assert_shares()


def _run(runner: Runner, number: int, tables: int) -> None:
    @seed(number)
    @settings(
        max_examples=tables,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(chains())
    def check(chain: Chain) -> None:
        runner.run(chain)

    check()
    runner.census.seeds.append(number)
