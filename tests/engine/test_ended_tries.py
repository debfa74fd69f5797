"""What an ended try of a task committed is found by the next one, which does as it was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.operation_files import new_scratch_folder, note_file, noted_operations
from spark_jobs.contract.request import AfterEndedTry, JobRequest, Origin
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.write.statement_run import StatementRun
from tests.conformance.behaviour import Behaviour, delete_from, insert, matched, not_matched, update
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS
from tests.support.paimon_tables import append

ORIGIN = Origin("dag", "run", "merge", -1, try_number=1)
NOTE = str(note_file(ORIGIN))
COUNT_UP = Behaviour(
    "",
    "VALUES (101), (1) AS s(id)",
    (matched(update(n="t.n + 1")), not_matched(insert(id="s.id", req="'r'", n="0"))),
)


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", ORDERS, partitioned=True)


def request(
    harness: Harness,
    operation_id: str,
    then: AfterEndedTry = "fail",
    statement: Behaviour = COUNT_UP,
) -> JobRequest:
    """The work of a task run; each clear of the task gives it another operation."""
    made = request_of(statement, harness)
    origin = replace(ORIGIN, try_number=1 + len(list(harness.warehouse.glob("_operations/op-*"))))
    return replace(made, operation_id=operation_id, origin=origin, after_ended_try=then)


def run(harness: Harness, each: JobRequest) -> JobResult:
    return Job(each, harness.spark, harness.open()).run()


def counts(harness: Harness) -> tuple[int, int]:
    """``n`` of the row that is there, and of the new one: how often the work was done."""
    rows = {row["id"]: row["n"] for row in harness.read()}
    return rows[101], rows[1]


def noted(warehouse: Path) -> list[str]:
    return noted_operations((warehouse / NOTE).read_text())


@pytest.mark.slow
def test_an_error_says_what_was_committed_until_somebody_decides(harness: Harness) -> None:
    """The first one's task never heard of its end: nobody removed the note."""
    assert run(harness, request(harness, "op-1")).new_snapshot_id is not None
    before = harness.state()

    for operation_id in ("op-2", "op-3"):
        result = run(harness, request(harness, operation_id))
        assert result.error is not None
        assert (result.error.code, result.error.retryable) == ("ENDED_TRY_COMMITTED", False)
        assert (
            f"Operation op-1 of this task was ended, but had committed snapshot "
            f"{before.snapshot_id} of db.target (1 rows inserted, 1 updated, 0 deleted)."
        ) in result.error.message
        assert "after_ended_try='skip'" in result.error.remedy
    assert harness.state().files == before.files
    assert counts(harness) == (2, 0)


@pytest.mark.slow
def test_the_commit_is_taken_for_the_result(harness: Harness) -> None:
    first = run(harness, request(harness, "op-1"))
    before = harness.state()

    result = run(harness, request(harness, "op-2", "skip"))
    again = replace(request(harness, "op-2", "skip"), origin=replace(ORIGIN, try_number=9))
    retried = run(harness, again)

    assert (result.status, result.new_snapshot_id) == ("committed", first.new_snapshot_id)
    assert (result.operation_id, result.error) == ("op-2", None)
    assert result.metrics.updated == first.metrics.updated
    assert "The statement was not run again." in result.warnings[0]
    assert retried.new_snapshot_id == first.new_snapshot_id
    assert harness.state().files == before.files


@pytest.mark.slow
def test_the_statement_is_run_once_more(harness: Harness) -> None:
    first = run(harness, request(harness, "op-1"))

    result = run(harness, request(harness, "op-2", "run"))

    assert result.error is None
    assert result.new_snapshot_id == (first.new_snapshot_id or 0) + 1
    assert f"committed snapshot {first.new_snapshot_id}" in result.warnings[0]
    assert "The statement was run once more." in result.warnings[0]
    assert counts(harness) == (3, 1)
    assert noted(harness.warehouse) == ["op-1", "op-2"]


@pytest.mark.slow
def test_a_statement_that_was_changed_is_not_skipped(harness: Harness) -> None:
    run(harness, request(harness, "op-1"))
    before = harness.state()

    changed = replace(COUNT_UP, source="VALUES (102) AS s(id)")
    result = run(harness, request(harness, "op-2", "skip", changed))

    assert result.error is not None
    assert result.error.code == "ENDED_TRY_COMMITTED"
    assert "its statement or its sources were changed" in result.error.message
    assert harness.state().files == before.files


@pytest.mark.slow
def test_a_try_that_committed_nothing_is_nothing_to_decide(harness: Harness) -> None:
    nothing = delete_from("", "id = -1")
    run(harness, request(harness, "op-1", statement=nothing))

    result = run(harness, request(harness, "op-2"))

    assert (result.status, result.warnings) == ("committed", ())
    assert counts(harness) == (2, 0)


@pytest.mark.slow
def test_a_try_that_still_runs_somewhere_loses_its_lease(harness: Harness) -> None:
    run(harness, request(harness, "op-1", statement=delete_from("", "id = -1")))
    log = OperationLog(harness.open().storage)
    lease = log.lease(new_scratch_folder("op-1", 1))
    lease.take()

    assert run(harness, request(harness, "op-2")).error is None

    assert not lease.is_held()


@pytest.mark.slow
def test_a_try_that_publishes_after_it_was_looked_for(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job hangs between last look and publication; here, it is the test that commits."""
    run(harness, request(harness, "op-1", statement=delete_from("", "id = -1")))
    late = [{**harness.read()[0], "id": 1}]
    wanted = StatementRun._require_wanted

    def commit_late(statement: StatementRun) -> None:
        wanted(statement)
        if late:
            append(harness.open(), [late.pop()], "op-1", TARGET)

    monkeypatch.setattr(StatementRun, "_require_wanted", commit_late)
    result = run(harness, request(harness, "op-2"))

    assert result.error is not None
    assert result.error.code == "ENDED_TRY_COMMITTED"
    assert "of this task was ended, but had committed" in result.error.message
    assert [row["id"] for row in harness.read()].count(1) == 1


@pytest.mark.slow
def test_another_task_run_is_not_concerned(harness: Harness) -> None:
    run(harness, request(harness, "op-1"))

    other = request(harness, "op-2")
    result = run(harness, replace(other, origin=replace(other.origin, run_id="another")))

    assert result.error is None
    assert counts(harness) == (3, 1)


@pytest.mark.slow
def test_a_dry_run_notes_nothing_and_asks_nobody(harness: Harness) -> None:
    run(harness, request(harness, "op-1"))

    result = run(harness, replace(request(harness, "op-2"), dry_run=True))

    assert (result.status, result.metrics.updated) == ("dry_run", 2)
    assert noted(harness.warehouse) == ["op-1"]


@pytest.mark.slow
def test_a_note_that_can_not_be_read_is_named(harness: Harness) -> None:
    (harness.warehouse / "_operations").mkdir()
    (harness.warehouse / NOTE).write_text("{")
    before = harness.state()

    result = run(harness, request(harness, "op-1"))

    assert result.error is not None
    assert result.error.code == "METADATA_UNREADABLE"
    assert NOTE in result.error.message
    assert harness.state().files == before.files
