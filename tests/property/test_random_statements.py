"""Random statements on real Paimon tables do what the oracle says.

``MERGE_PROPERTY_TABLES`` sets the number of random tables, with three statements each, and
``MERGE_PROPERTY_SEED`` the first seed: a fixed one, so that every run tries the same. New seeds are
``make test-property``'s. A failure names its seed and the smallest chain that still fails.
"""

from __future__ import annotations

import os

import pytest

from tests.property.cases import STATEMENTS_PER_TABLE, kind_of
from tests.property.runner import Runner
from tests.support.turns import EVERYTHING, part

TABLES = int(os.environ.get("MERGE_PROPERTY_TABLES", "24"))
QUICK_TABLES = 5
FIRST_SEED = int(os.environ.get("MERGE_PROPERTY_SEED", "20240229"))
# By default a run takes a third of them, with as many of each kind of table as the next runs, which
# take the others. Kinds go by the seed: every third one would have a key, or none.
_PARTS = 1 if "MERGE_PROPERTY_TABLES" in os.environ or EVERYTHING else 3
_BY_KIND = sorted(range(FIRST_SEED, FIRST_SEED + TABLES), key=lambda seed: kind_of(seed).name)
SEEDS = _BY_KIND[part(_PARTS) :: _PARTS]


@pytest.mark.parametrize("seed", range(FIRST_SEED - QUICK_TABLES, FIRST_SEED))
def test_a_few_random_statements(runner: Runner, seed: int) -> None:
    runner.run_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_statements(runner: Runner, seed: int) -> None:
    runner.run_seed(seed)


@pytest.mark.slow
def test_the_statements_met_what_they_should(runner: Runner) -> None:
    """Judges the tests before it: they must not have become harmless."""
    assert runner.census.total >= (QUICK_TABLES + len(SEEDS)) * STATEMENTS_PER_TABLE
    runner.census.assert_shares()
