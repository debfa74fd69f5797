"""A try that was given up neither begins nor publishes, wherever its driver is by then."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.operation_files import fence_path, note_file, note_text
from spark_jobs.contract.request import JobRequest, Origin
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.permission import Fence, LastLook
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.run import run, run_all
from spark_jobs.spi.storage import WarehouseStorage
from tests.conformance.behaviour import Behaviour, insert, not_matched
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

ADD = Behaviour("", "VALUES (1) AS s(id)", (not_matched(insert(id="s.id", req="'r'", p="'a'")),))


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", ORDERS, partitioned=True)


@pytest.fixture
def storage(tmp_path: Path) -> WarehouseStorage:
    return WarehouseStorage(pafs.LocalFileSystem(), str(tmp_path), None)


def of_try(harness: Harness, number: int, statement: object = None) -> JobRequest:
    made = replace(request_of(ADD, harness), origin=Origin("dag", "run", "task", try_number=number))
    if statement is None:
        return made
    return JobRequest(made.operation_id, TARGET, harness.catalog, statement, origin=made.origin)


def give_up(harness: Harness, request: JobRequest) -> None:
    """As the operator does it, without the leases: there may be none."""
    fence = harness.warehouse / fence_path(request.operation_id, request.origin.try_number)
    fence.parent.mkdir(exist_ok=True)
    fence.write_text("")


def is_given_up(error: object) -> bool:
    return getattr(error, "code", None) == "RUN_GIVEN_UP"


@pytest.mark.parametrize(
    "statement",
    [
        None,
        CompactSpec(),
        ExpireSnapshotsSpec(retain_max=1, retain_min=1),
        RemoveOrphanFilesSpec("1 d"),
    ],
    ids=["merge", "compaction", "expiry", "orphan removal"],
)
def test_a_driver_that_begins_late_changes_nothing(harness: Harness, statement: object) -> None:
    request = of_try(harness, 1, statement)
    give_up(harness, request)
    before = sorted((harness.warehouse / "db.db").rglob("*"))

    result = run(request, harness.spark)

    assert is_given_up(result.error), result
    assert sorted((harness.warehouse / "db.db").rglob("*")) == before


@pytest.mark.parametrize(
    "statement",
    [ExpireSnapshotsSpec(retain_max=1, retain_min=1), RemoveOrphanFilesSpec("1 d")],
    ids=["expiry", "orphan removal"],
)
def test_giving_up_while_table_care_is_at_work(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, statement: object
) -> None:
    request = of_try(harness, 1, statement)
    Job(replace(of_try(harness, 1), operation_id="newer"), harness.spark, harness.open()).run()
    orphan = harness.warehouse / "db.db" / "target" / "manifest" / "manifest-left-0"
    orphan.write_text("of a writer that was killed")
    os.utime(orphan, (0, 0))
    before = sorted((harness.warehouse / "db.db").rglob("*"))
    enter = Fence.enter

    def given_up_behind_it(fence: Fence) -> None:
        enter(fence)
        give_up(harness, request)

    monkeypatch.setattr(Fence, "enter", given_up_behind_it)
    result = run(request, harness.spark)

    assert is_given_up(result.error), result
    assert sorted((harness.warehouse / "db.db").rglob("*")) == before


def test_giving_up_in_the_pause_after_a_conflict(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = of_try(harness, 1)
    before = harness.state()
    attempts = []

    def in_conflict(*_: object) -> None:
        attempts.append(1)
        give_up(harness, request)
        raise CommitError(ErrorCode.COMMIT_CONFLICT, "another writer", "")

    monkeypatch.setattr(Job, "_changed", in_conflict)

    result = Job(request, harness.spark, harness.open()).run()

    assert is_given_up(result.error)
    assert len(attempts) == 1
    assert harness.state().files == before.files


def test_giving_up_after_the_files_are_written(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = of_try(harness, 1)
    before = harness.state()
    monkeypatch.setattr(LastLook, "require_task", lambda _: give_up(harness, request))

    result = Job(request, harness.spark, harness.open()).run()

    assert is_given_up(result.error)
    assert harness.state().files == before.files


def test_a_list_that_goes_on_after_failures_ends(harness: Harness) -> None:
    """Each statement has an operation, and so a fence, of its own."""
    requests = tuple(
        replace(of_try(harness, 1), operation_id=f"operation-{number}") for number in range(2)
    )
    before = harness.state()
    give_up(harness, requests[1])

    results = run_all(JobBatch("batch", requests, on_failure="continue"), harness.spark)

    assert results[0].error is None
    assert is_given_up(results[1].error)
    assert harness.state().snapshot_id == before.snapshot_id + 1


def test_an_earlier_driver_that_comes_late_leaves_a_later_try_alone(harness: Harness) -> None:
    first, second = of_try(harness, 1), of_try(harness, 2)
    storage = harness.open().storage
    log = OperationLog(storage)
    Fence.of(second, storage).enter()
    lease = log.lease(log.begin(second.operation_id, 2))

    late = run(first, harness.spark)

    assert is_given_up(late.error)
    assert lease.is_held()
    assert run(second, harness.spark).status == "committed"


def test_an_operation_after_which_another_was_noted_is_given_up(harness: Harness) -> None:
    """The task was cleared, and its worker was gone: nobody could put a fence."""
    request = of_try(harness, 1)
    note = harness.warehouse / str(note_file(request.origin))
    note.parent.mkdir(exist_ok=True)
    note.write_text(note_text([request.operation_id, "a-later-one"]))
    before = harness.state()

    result = run(request, harness.spark)

    assert is_given_up(result.error)
    assert harness.state().files == before.files


def test_a_try_is_given_up_by_its_own_fence_alone(storage: WarehouseStorage) -> None:
    Fence(storage, "op", 3).enter()

    Fence(storage, "op", 3).require_none()
    Fence(storage, "other", 2).require_none()
    for number in (1, 2):
        with pytest.raises(CommitError, match="was given up"):
            Fence(storage, "op", number).enter()


@pytest.mark.parametrize("content", ["", "2", "{", '{"version": 99}'])
def test_what_is_in_a_fence_does_not_matter(
    storage: WarehouseStorage, tmp_path: Path, content: str
) -> None:
    path = tmp_path / fence_path("op", 1)
    path.parent.mkdir()
    path.write_text(content)

    with pytest.raises(CommitError, match="was given up"):
        Fence(storage, "op", 1).require_none()


def test_where_a_fence_cannot_be_looked_for_nothing_goes_on(tmp_path: Path) -> None:
    no_folder = tmp_path / "workspace"
    no_folder.write_text("")
    fence = Fence(WarehouseStorage(pafs.LocalFileSystem(), str(no_folder), None), "op", 1)

    with pytest.raises(InternalError) as raised:
        fence.require_none()

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
