"""Each statement of a list has guards of its own, on each kind of table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.run import run_all
from tests.conformance.behaviour import Behaviour, delete_from
from tests.conformance.changing import KINDS, STATEMENTS, files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.just_limits import costs_of, limits
from tests.conformance.tables import ORDERS_WITHOUT_NULL

_ALWAYS = ("merge-append-dv",)
_FINDS = RowCheck("finds", "SELECT operation FROM changes")
_HOLDS = RowCheck("holds", "SELECT * FROM changes WHERE operation IS NULL")


def _cases() -> Iterator[object]:
    for behaviour, kind in itertools.product(STATEMENTS, KINDS):
        name = f"{behaviour}-{kind}"
        marks = () if name in _ALWAYS else pytest.mark.by_turns(72)
        yield pytest.param(behaviour, kind, marks=marks, id=name)


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "kind"), list(_cases()))
def test_guards_of_a_statement_of_a_list(
    behaviour: Behaviour, kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    request = request_of(behaviour, harness)
    # Checks have a table of this name.
    own = tuple(each for each in request.sources if each.name != "target")
    request = replace(request, sources=own)
    *_, told = _run(harness, replace(request, guards=costs_of(behaviour), dry_run=True))
    assert told.error is None
    kept, tripped = limits(behaviour, told, len(harness.state().rows))
    # Of tables with a primary key, an INSERT INTO reads no old rows.
    is_blind = kind == "primary-key" and isinstance(behaviour.statement, InsertIntoSpec)
    guards = [Guards(**{name: limit}) for name, limit in tripped.items()]
    guards += [] if is_blind else [Guards(checks=(_FINDS,))]
    names = [*tripped, *([] if is_blind else [_FINDS.name])]
    before = files_of(harness.warehouse)

    nothing, *failed = _run(harness, *(replace(request, guards=each) for each in guards))

    assert nothing.status == "unchanged"
    assert len(failed) == len(names)
    for name, each in zip(names, failed, strict=True):
        assert each.error is not None, name
        assert (each.error.code, each.error.retryable) == ("GUARD_FAILED", False)
        assert name in each.error.message
    assert files_of(harness.warehouse) == before
    held = Guards(**kept, checks=() if is_blind else (_HOLDS,))
    _, done = _run(harness, replace(request, guards=held))
    assert (done.status, done.error) == ("committed", None)
    assert all(each.held for each in done.metrics.guards)
    assert {each.name for each in done.metrics.guards} >= set(kept)


def _run(harness: Harness, *requests: JobRequest) -> list[JobResult]:
    """A list of a statement that changes nothing, and of these, whatever fails."""
    nothing = request_of(delete_from("", "id = -1"), harness)
    asked = [replace(each, operation_id=f"op-{n}") for n, each in enumerate((nothing, *requests))]
    for path in harness.warehouse.glob("_operations/op-*"):
        path.unlink()
    batch = JobBatch("batch", tuple(asked), on_failure="continue")
    return list(run_all(batch, harness.spark).values())


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["append-dv", "iceberg-mor"])
def test_a_statement_of_a_list_is_guarded_alone(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    first, second = (
        replace(request_of(delete_from("", where), harness), operation_id=name)
        for name, where in (("first", "id = 100"), ("second", "p = 'b'"))
    )
    second = replace(second, guards=Guards(max_deleted_rows=Limit(0)))
    told = replace(second, operation_id="told", dry_run=True)
    (foreseen,) = run_all(JobBatch("told", (told,)), harness.spark).values()
    assert [each.held for each in foreseen.metrics.guards] == [False]
    ids = {row["id"] for row in harness.read()}

    done, failed = run_all(JobBatch("batch", (first, second), 1), harness.spark).values()

    assert (done.status, done.error) == ("committed", None)
    assert failed.error is not None
    assert failed.error.code == "GUARD_FAILED"
    assert {row["id"] for row in harness.read()} == ids - {100}
    before = files_of(harness.warehouse)
    tripped = replace(first, operation_id="third", guards=Guards(min_deleted_rows=Limit(1)))
    (again,) = run_all(JobBatch("again", (tripped,)), harness.spark).values()
    assert again.error is not None
    assert again.error.code == "GUARD_FAILED"
    assert files_of(harness.warehouse) == before
