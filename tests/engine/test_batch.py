"""Several statements in one application."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.job.batch import run_batch
from spark_jobs.run import run_all
from tests.conformance.behaviour import Behaviour, insert, not_matched
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

LAKE = CatalogSpec("paimon", "/lake")


def request(name: str, table: str | None = None) -> JobRequest:
    return JobRequest(name, TableName("db", table or name), LAKE, DeleteSpec("t"))


def good(request: JobRequest) -> JobResult:
    return JobResult(request.operation_id, "committed", str(request.target), "")


def bad(request: JobRequest) -> JobResult:
    error = ErrorInfo("COLUMN_NOT_FOUND", "no column", "", retryable=False)
    return replace(good(request), status="failed", error=error)


class Runs:
    """Runs requests; those of ``failing`` fail."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.names: list[str] = []

    def __call__(self, request: JobRequest) -> JobResult:
        self.names.append(request.operation_id)
        return bad(request) if request.operation_id in self.failing else good(request)


def test_in_order() -> None:
    runs = Runs()

    results = run_batch(JobBatch("batch", tuple(map(request, "abc"))), good, runs)

    assert runs.names == ["a", "b", "c"]
    assert [each.operation_id for each in results.values()] == ["a", "b", "c"]


def test_a_failure_stops_those_behind_it() -> None:
    runs = Runs("b")

    results = run_batch(JobBatch("batch", tuple(map(request, "abc"))), good, runs)

    assert runs.names == ["a", "b"]
    assert {index: each.status for index, each in results.items()} == {0: "committed", 1: "failed"}


def test_a_failure_does_not_stop_those_behind_it() -> None:
    runs = Runs("b")

    results = run_batch(JobBatch("batch", tuple(map(request, "abc")), 1, "continue"), good, runs)

    assert runs.names == ["a", "b", "c"]
    assert [each.status for each in results.values()] == ["committed", "failed", "committed"]


def test_a_wrong_one_is_refused_before_the_first_runs() -> None:
    runs = Runs()

    results = run_batch(JobBatch("batch", tuple(map(request, "abc"))), Runs("c"), runs)

    assert runs.names == []
    assert {index: each.status for index, each in results.items()} == {2: "failed"}


def test_one_that_needs_another_is_not_judged_before_it() -> None:
    checks, runs = Runs("b"), Runs()
    batch = JobBatch("batch", (request("a", "t"), request("b", "t")))

    run_batch(batch, checks, runs)

    assert checks.names == ["a"]
    assert runs.names == ["a", "b"]


def test_several_at_once_but_none_before_what_it_needs() -> None:
    both = threading.Barrier(2, timeout=30)
    events: list[str] = []

    def run_one(request: JobRequest) -> JobResult:
        events.append(f"{request.operation_id} starts")
        if request.operation_id in ("a", "b"):
            both.wait()
        events.append(f"{request.operation_id} ends")
        return good(request)

    batch = JobBatch("batch", (request("a", "t"), request("b"), request("c", "t"), request("d")), 2)
    results = run_batch(batch, good, run_one)

    assert sorted(events[:2]) == ["a starts", "b starts"]
    assert events.index("a ends") < events.index("c starts")
    assert list(results) == [0, 1, 2, 3]


def add(number: int) -> Behaviour:
    values = insert(id="s.id", req="'r'", p="'a'")
    return Behaviour("", f"VALUES ({number}) AS s(id)", (not_matched(values),))


def test_each_has_its_own_snapshot(make_table: Callable[..., Harness]) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    before = harness.state()
    first, second = (
        JobBatch(
            "batch",
            tuple(
                replace(
                    request_of(add(number), harness),
                    operation_id=f"operation-{number}",
                    origin=Origin("dag", "run", "task", try_number=try_, statement=str(number)),
                )
                for number in (1001, 1002)
            ),
        )
        for try_ in (1, 2)
    )

    results = run_all(first, harness.spark)
    again = run_all(second, harness.spark)

    after = harness.state()
    assert [each.error for each in results.values()] == [None, None]
    assert [each.new_snapshot_id for each in results.values()] == [
        before.snapshot_id + 1,
        before.snapshot_id + 2,
    ]
    assert again == results
    assert after.snapshot_id == before.snapshot_id + 2
    assert {1001, 1002} <= {row["id"] for file in after.files.values() for row in file.rows}


def test_a_wrong_one_leaves_all_tables_as_they_were(make_table: Callable[..., Harness]) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    before = harness.state()
    wrong = replace(request_of(add(1), harness), operation_id="wrong", target=TARGET)
    wrong = replace(wrong, target=TableName("db", "missing"))
    right = replace(request_of(add(1003), harness), operation_id="right")

    results = run_all(JobBatch("batch", (right, wrong)), harness.spark)

    (error,) = [each.error for each in results.values()]
    assert error is not None
    assert error.code == "TABLE_NOT_FOUND"
    after = harness.state()
    assert (after.snapshot_id, after.files, after.on_disk) == (
        before.snapshot_id,
        before.files,
        before.on_disk,
    )


def test_what_comes_too_late_is_not_run_and_says_so(
    make_table: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    before = harness.state()
    first, second = (
        replace(request_of(add(number), harness), operation_id=f"late-{number}")
        for number in (1, 2)
    )
    moments = iter((0.0, 5.0))
    monkeypatch.setattr("spark_jobs.run.monotonic", lambda: next(moments, 11.0))

    results = run_all(JobBatch("late", (first, second), 1, "continue", 10), harness.spark)

    assert [each.status for each in results.values()] == ["committed", "failed"]
    late = results[1]
    assert late.error is not None
    assert (late.error.code, late.error.retryable) == ("TIME_LIMIT_REACHED", True)
    assert harness.state().snapshot_id == before.snapshot_id + 1
    again = replace(second, origin=Origin("dag", "run", "task", try_number=2, retries=1))
    assert run_all(JobBatch("late", (again,)), harness.spark)[0].status == "committed"
