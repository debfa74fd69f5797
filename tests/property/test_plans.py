"""Random statements have one outcome under every physical plan, and it is the oracle's."""

from __future__ import annotations

import dataclasses
import pprint

import pytest

from spark_jobs.contract.result import JobResult
from spark_jobs.errors import ErrorCode
from tests.property.cases import Chain, kind_of, random_chain
from tests.property.planned import LIMITS, suited_chain
from tests.property.runner import Runner
from tests.support.forced_plans import Forced
from tests.support.table_kinds import BUILT
from tests.support.turns import EVERYTHING

# The only tables whose merges have more than one plan.
_SEEDS = [seed for seed in range(4_000, 5_000) if kind_of(seed) in BUILT]
_PLANS: tuple[Forced, ...] = ("join", "located", "prepared")


def _outcome(met: set[str], result: JobResult) -> tuple[object, ...]:
    """What all plans have in common; the runner compares rows with the oracle.

    Of several errors that a statement meets, any one is reported.
    """
    metrics, error = result.metrics, result.error
    counts = (metrics.matched, metrics.inserted, metrics.updated, metrics.deleted)
    is_certain = len(met & ErrorCode.__members__.keys()) == 1
    return result.status, error and (error.code if is_certain else "one of several"), counts


def _merges(seed: int) -> Chain | None:
    """The chain of a seed if it has merges, half of which the prepared plan can run."""
    suited = suited_chain(random_chain(seed), "prepared" if seed % 2 else "join")
    return dataclasses.replace(suited, limits=LIMITS) if suited.steps else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS if EVERYTHING else _SEEDS[:3])
def test_every_plan_has_the_same_outcome(runner: Runner, seed: int) -> None:
    chain = _merges(seed)
    if chain is None:
        return
    found = {}
    for plan in _PLANS:
        planned = dataclasses.replace(chain, plan=plan)
        found[plan] = [_outcome(*each) for each in runner.results(planned)]
    assert found["located"] == found["join"], pprint.pformat(chain)
    assert found["prepared"] == found["join"], pprint.pformat(chain)
