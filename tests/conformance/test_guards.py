"""Guards: what changes more, or less, than they allow is not published, and leaves no file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.guards import MEANT_FOR, Guards, Limit
from spark_jobs.contract.inserts import (
    InsertIntoSpec,
    InsertOverwriteSpec,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.run import run_all
from tests.conformance.behaviour import (
    Behaviour,
    delete_from,
    insert_all,
    matched,
    not_matched,
    update,
    update_set,
)
from tests.conformance.changing import MIXED, changing_cases, files_of
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS, ORDERS_WITHOUT_NULL
from tests.support.forced_plans import Forced, forced_plan

_ALWAYS = ("delete-append-dv",)
_COUNTS = {"deleted_rows": "deleted", "updated_rows": "updated", "inserted_rows": "inserted"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "kind", "plan"), list(changing_cases(25, _ALWAYS, rows_are_known=False))
)
def test_guards_that_just_hold_and_just_do_not(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    with forced_plan(plan):
        told = _run(behaviour, harness, None, dry_run=True)
    assert told.error is None
    kept, tripped = _limits(behaviour, told, len(_rows(harness)))
    before = files_of(harness.warehouse)

    for name in tripped:
        with forced_plan(plan):
            failed = _run(behaviour, harness, Guards(**{name: tripped[name]}))
        assert failed.error is not None, name
        assert (failed.error.code, failed.error.retryable) == ("GUARD_FAILED", False)
        assert name in failed.error.message
        assert files_of(harness.warehouse) == before, name
    with forced_plan(plan):
        foreseen = _run(behaviour, harness, Guards(**tripped), dry_run=True)
    assert {each.name for each in foreseen.metrics.guards if not each.held} == set(tripped)
    assert files_of(harness.warehouse) == before
    with forced_plan(plan) as tally:
        done = _run(behaviour, harness, Guards(**kept))

    assert (done.status, done.error) == ("committed", None)
    assert plan == "auto" or tally.ran == 1
    assert {each.name for each in done.metrics.guards} == set(kept)
    assert all(each.held for each in done.metrics.guards)
    counted = (told.metrics.deleted, told.metrics.updated, told.metrics.inserted)
    assert (done.metrics.deleted, done.metrics.updated, done.metrics.inserted) == counted


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


@pytest.mark.slow
def test_a_statement_without_rows_needs_them_if_a_guard_does(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    nothing = Behaviour("nothing", f"{MIXED} WHERE id < 0", (matched(update(v="s.v")),))
    before = files_of(harness.warehouse)

    for guards in (Guards(min_source_rows=Limit(1)), Guards(min_updated_rows=Limit(1))):
        failed = _run(nothing, harness, guards)
        assert failed.error is not None
        assert failed.error.code == "GUARD_FAILED"
    assert _run(nothing, harness, Guards(max_updated_rows=Limit(0))).status == "unchanged"
    assert files_of(harness.warehouse) == before


@pytest.mark.slow
def test_a_share_of_a_partition_names_the_partition(make_table: MakeTable) -> None:
    harness = make_table("iceberg-mor", ORDERS, partitioned=True)

    failed = _run(
        delete_from("", "p = 'a' OR id = 140"), harness, Guards(max_partition_deleted_share=0.9)
    )

    assert failed.error is not None
    assert "100 % in partition p=a" in failed.error.message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-dv", "iceberg-mor"])
def test_a_partition_that_an_update_empties_has_changed(kind: str, make_table: MakeTable) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    moved = update_set("", {"p": "'b'"}, "p = 'a'")

    failed = _run(moved, harness, Guards(max_partition_changed_share=0.9))

    assert failed.error is not None
    assert "100 % in partition p=a" in failed.error.message


@pytest.mark.slow
def test_files_that_are_only_read_are_not_rewritten(make_table: MakeTable) -> None:
    harness = make_table("iceberg-cow", ORDERS_WITHOUT_NULL, partitioned=True)
    merge = Behaviour("insert only", MIXED, (not_matched(insert_all()),))
    guards = Guards(max_files_rewritten=Limit(0), max_bytes_rewritten=0)

    assert _run(merge, harness, guards).status == "committed"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-mor"])
def test_the_last_writer_is_guarded_by_what_is_there_by_then(
    kind: str, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    statement = InsertOverwriteSpec("s", "dynamic", last_writer_wins=True)
    overwrite = Behaviour("", MIXED, (), statement=statement)
    others = Behaviour("", MIXED.replace("(1", "(7"), (), statement=InsertIntoSpec("s"))
    request = replace(
        request_of(overwrite, harness), guards=Guards(max_partition_deleted_share=1.0)
    )
    connector = harness.open()

    def commit() -> None:
        other = replace(request_of(others, harness), operation_id="others")
        assert Job(other, harness.spark, harness.open()).run().status == "committed"

    writes = Overtaken(connector.writes, commit)
    done = Job(request, harness.spark, replace(connector, writes=writes)).run()

    assert (done.status, done.error) == ("committed", None)
    assert [each.held for each in done.metrics.guards] == [True]


@dataclass
class Overtaken:
    """Writes before whose first publication others commit."""

    writes: Any
    others: Callable[[], None]
    is_first: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writes, name)

    def finish_merge(self, *arguments: Any) -> Any:
        if self.is_first:
            self.is_first = False
            self.others()
        return self.writes.finish_merge(*arguments)


def _limits(
    behaviour: Behaviour, told: JobResult, table_rows: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The guards that just hold for what a dry run told, and those that just do not."""
    metrics = told.metrics
    kept: dict[str, Any] = {}
    tripped: dict[str, Any] = {}
    for ending, count in _COUNTS.items():
        number: int = getattr(metrics, count)
        kept |= {f"min_{ending}": Limit(number), f"max_{ending}": Limit(number)}
        tripped[f"min_{ending}"] = Limit(number + 1)
        if number:
            tripped[f"max_{ending}"] = Limit(number - 1)
    kept |= {"min_source_rows": Limit(5), "max_source_rows": Limit(5)}
    tripped |= {"min_source_rows": Limit(6), "max_source_rows": Limit(4)}
    shares = {"deleted": metrics.deleted, "changed": metrics.deleted + metrics.updated}
    for name, number in shares.items():
        share = number / table_rows
        # A third has no number of its own.
        kept[f"max_{name}_share"] = min(math.nextafter(share, 1), 1.0)
        kept[f"max_partition_{name}_share"] = 1.0
        if number:
            tripped[f"max_{name}_share"] = share - 1e-6
            tripped[f"max_partition_{name}_share"] = 1e-9
    kept |= {"max_files_rewritten": Limit(share=1.0), "max_bytes_rewritten": 2**40}
    tripped |= {"max_files_rewritten": Limit(0), "max_bytes_rewritten": 0}
    assert behaviour.statement is None or behaviour.statement.kind in set().union(
        *MEANT_FOR.values()
    )
    return _meant(behaviour, kept), _meant(behaviour, tripped)


def _meant(behaviour: Behaviour, limits: dict[str, Any]) -> dict[str, Any]:
    kind = behaviour.statement.kind if behaviour.statement else "merge"
    names = [name for name in limits if kind in MEANT_FOR[name]]
    # DELETE of whole partitions drops their files unread.
    costs_nothing = behaviour.name == "delete of partitions"
    return {
        name: limits[name]
        for name in names
        if not (costs_nothing and name in ("max_files_rewritten", "max_bytes_rewritten"))
    }


def _run(
    behaviour: Behaviour, harness: Harness, guards: Guards | None, *, dry_run: bool = False
) -> JobResult:
    request = replace(request_of(behaviour, harness), dry_run=dry_run, guards=guards)
    return Job(request, harness.spark, harness.open()).run()


def _rows(harness: Harness) -> list[Any]:
    return list(harness.state().rows)
