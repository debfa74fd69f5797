"""What a statement does is within the bounds that its plan tells beforehand."""

from __future__ import annotations

import dataclasses

import pytest

from tests.property.cases import STATEMENTS_PER_TABLE
from tests.property.runner import Runner
from tests.support.turns import EVERYTHING

_FIRST_SEED = 57_000
_TABLES = 200 // STATEMENTS_PER_TABLE + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(_FIRST_SEED, _FIRST_SEED + (_TABLES if EVERYTHING else 2)))
def test_statements_stay_within_their_plans(runner: Runner, seed: int) -> None:
    dataclasses.replace(runner, plans_first=True).run_seed(seed)
