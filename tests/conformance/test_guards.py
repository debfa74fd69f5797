"""Guards: what changes more, or less, than they allow is not published, and leaves no file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.inserts import (
    InsertIntoSpec,
    InsertOverwriteSpec,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
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
from tests.conformance.just_limits import costs_of, limits
from tests.conformance.tables import ORDERS, ORDERS_WITHOUT_NULL
from tests.support.forced_plans import Forced, forced_plan

_ALWAYS = ("delete-append-dv",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "kind", "plan"), list(changing_cases(34, _ALWAYS, rows_are_known=False))
)
def test_guards_that_just_hold_and_just_do_not(
    behaviour: Behaviour, kind: str, plan: Forced, make_table: MakeTable
) -> None:
    harness = make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True)
    with forced_plan(plan):
        told = _run(behaviour, harness, costs_of(behaviour), dry_run=True)
    assert told.error is None
    kept, tripped = limits(behaviour, told, len(harness.state().rows))
    before = files_of(harness.warehouse)

    for name in tripped:
        with forced_plan(plan):
            failed = _run(behaviour, harness, Guards(**{name: tripped[name]}))
        assert failed.error is not None, name
        assert (failed.error.code, failed.error.retryable) == ("GUARD_FAILED", False)
        assert name in failed.error.message
        assert files_of(harness.warehouse) == before, name
    for told_apart in ("min_", "max_"):
        together = {name: tripped[name] for name in tripped if name.startswith(told_apart)}
        with forced_plan(plan):
            foreseen = _run(behaviour, harness, Guards(**together), dry_run=True)
        assert {each.name for each in foreseen.metrics.guards if not each.held} == set(together)
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


def _run(
    behaviour: Behaviour, harness: Harness, guards: Guards | None, *, dry_run: bool = False
) -> JobResult:
    request = replace(request_of(behaviour, harness), dry_run=dry_run, guards=guards)
    return Job(request, harness.spark, harness.open()).run()
