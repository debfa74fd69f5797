"""Behaviours on tables with a primary key: the same rows, or the error that the key demands.

``make test`` runs the thirtieth whose turn it is (``MERGE_TESTS_TURN``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour, Failure, fails
from tests.conformance.behaviours import BEHAVIOURS
from tests.conformance.check import (
    check_failure,
    check_untouched,
    check_verdict,
    readable,
    request_of,
)
from tests.conformance.conftest import MakeTable
from tests.conformance.connectors import KEYED_HARNESSES
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import Row
from tests.support.keyed_checker import problems_of
from tests.support.turns import EVERYTHING, has_turn

_PARTS = 30


def _cases() -> Iterator[object]:
    for number, behaviour in enumerate(BEHAVIOURS):
        layouts = _layouts(behaviour) if EVERYTHING else _layouts(behaviour)[:1]
        for turn, kind in enumerate(KEYED_HARNESSES):
            if not (has_turn(number + turn, _PARTS) or (behaviour.smoke and not turn)):
                continue
            for partitioned in layouts:
                layout = "partitioned" if partitioned else "flat"
                yield pytest.param(behaviour, kind, partitioned, id=f"{behaviour}-{kind}-{layout}")


def _layouts(behaviour: Behaviour) -> tuple[bool, ...]:
    """Partition columns belong to the key, so they are not NULL."""
    rows = (*behaviour.table.rows, *behaviour.inserted)
    has_partitions = all(row["p"] is not None for row in rows)
    return (*((True,) if has_partitions else ()), *(() if behaviour.needs_partitions else (False,)))


def _failure(behaviour: Behaviour, key: tuple[str, ...]) -> Failure | None:
    """The error that the key demands, if any; ``key`` names columns."""
    if behaviour.fails is not None:
        return behaviour.fails
    rows = {row["id"]: row for row in behaviour.table.rows}
    for id_, changes in behaviour.updated.items():
        if any(changes.get(name, rows[id_][name]) != rows[id_][name] for name in key):
            return fails(ErrorCode.KEY_CHANGED)
    if any(row[name] is None for row in behaviour.inserted for name in key):
        return fails(ErrorCode.NOT_NULL_VIOLATION)
    counts = Counter(tuple(row[name] for name in key) for row in _rows(behaviour, key))
    if max(counts.values(), default=1) > 1:
        return fails(ErrorCode.DUPLICATE_KEY_INSERT)
    return None


def _rows(behaviour: Behaviour, key: tuple[str, ...]) -> list[Row]:
    """The rows afterwards; INSERT INTO replaces the row of a key."""
    if not isinstance(behaviour.statement, InsertIntoSpec):
        return behaviour.expected_rows
    rows = {tuple(row[name] for name in key): row for row in behaviour.expected_rows}
    return list(rows.values())


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(("behaviour", "kind", "partitioned"), list(_cases()))
def test_behaviour(
    behaviour: Behaviour, kind: str, partitioned: bool, make_table: MakeTable
) -> None:
    harness = make_table(kind, behaviour.table, partitioned=partitioned)
    before = harness.state()
    request = request_of(behaviour, harness)

    result = Job(request, harness.spark, harness.open()).run()

    after = harness.state()
    check_verdict(behaviour, harness, request, result)
    failure = _failure(behaviour, harness.primary_key)
    if failure is not None:
        check_failure(result, failure)
        check_untouched(before, after)
        return
    assert result.error is None, result.error
    assert readable(after.rows) == readable(_rows(behaviour, harness.primary_key))
    found = (result.metrics.inserted, result.metrics.updated, result.metrics.deleted)
    assert found == (len(behaviour.inserted), len(behaviour.updated), len(behaviour.deleted))
    assert after.on_disk == before.on_disk | set(after.files) | set(after.indexes)
    _check_table(harness)
    if not behaviour.changes:
        assert result.status == "unchanged"
        check_untouched(before, after)
        return
    assert result.new_snapshot_id == after.snapshot_id == (before.snapshot_id or 0) + 1


def _check_table(harness: Harness) -> None:
    table = harness.warehouse / f"{TARGET.database}.db" / TARGET.table
    assert not problems_of(table, numbered=False)
