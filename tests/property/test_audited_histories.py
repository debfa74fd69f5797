"""The audit is the sum of the changes, whatever is killed in random histories, and whenever."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.audited_tables import KINDS, AuditedTable
from tests.support.killed_jobs import Steps

_OPERATIONS = 6
# More than the steps of any statement, so that some are not killed.
_STEPS = 27


@pytest.mark.slow
@pytest.mark.by_turns(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_a_history(seed: int, kind: str, spark: SparkSession, tmp_path: Path) -> None:
    table, chance = AuditedTable(spark, kind, tmp_path), random.Random(f"{seed} {kind}")
    for number in range(_OPERATIONS):
        before, had = table.rows(), table.audit()
        request = table.random_request(f"op-{number}", chance)
        tries, result = chance.randrange(3), None
        for each in range(1, tries + 1):
            steps = Steps(chance.randrange(1, _STEPS), behind=chance.random() < 0.5)
            result = table.tried(request, each, steps)
            if result is not None:
                break
        result = result or table.tried(request, tries + 1)
        assert result is not None
        table.require_audited(result, before, had)


@pytest.mark.slow
@pytest.mark.by_turns(40)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("last", range(1, _STEPS))
def test_a_kill_at_each_step(
    last: int, behind: bool, kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = AuditedTable(spark, kind, tmp_path)
    first = table.tried(table.merge("first", "(1, 'a', 1), (2, 'a', 1), (3, 'a', 1)"), 1)
    assert first is not None
    before, had = table.rows(), table.audit()
    assert len(had) == 3
    request = table.merge("op", "(1, 'b', 0), (2, 'b', 1), (4, 'b', 1)")

    steps = Steps(last, behind=behind)
    result = table.tried(request, 1, steps)
    assert (result is None) == steps.is_dead
    if result is None:
        result = table.tried(request, 2)
    assert result is not None

    table.require_audited(result, before, had)
