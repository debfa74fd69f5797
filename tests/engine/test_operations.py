"""Exactly once: an operation that committed is found again; another one of its id is refused."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.maintenance import RollbackSpec
from spark_jobs.contract.request import (
    CatalogSpec,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
)
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime import operations
from spark_jobs.engine.runtime.operations import OperationLog, require_same_work
from spark_jobs.errors import CommitError, DataError, ErrorCode
from spark_jobs.spi.storage import WarehouseStorage
from tests.conformance.behaviour import (
    Behaviour,
    delete_from,
    insert,
    matched,
    not_matched,
    update,
    update_set,
)
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

REQUEST = JobRequest(
    "op-1",
    TableName("db", "t"),
    CatalogSpec("folder", "/w"),
    MergeSpec("s", "t.id = s.id", (MergeCase("matched", DeleteAction()),), "t", "s"),
    (SqlSource("s", "SELECT 1 AS id"),),
    origin=Origin(try_number=2, retries=3),
)
DONE = JobResult(
    "op-1", "committed", "db.t", REQUEST.digest(), Metrics(deleted=4), 1, 2, try_number=1, retries=3
)


def later(request: JobRequest, try_number: int = 2) -> JobRequest:
    return replace(request, origin=replace(request.origin, try_number=try_number))


@pytest.fixture
def log(tmp_path: Path) -> OperationLog:
    return OperationLog(
        WarehouseStorage(pafs.LocalFileSystem(), str(tmp_path), f"file://{tmp_path}")
    )


def test_a_stored_result_is_read_back(log: OperationLog) -> None:
    log.store(DONE)

    assert log.read("op-1") == DONE
    assert log.read("op-2") is None


def test_a_failure_gives_way_to_the_result_of_a_later_try(log: OperationLog) -> None:
    log.store(OperationLog.failed(REQUEST, DataError(ErrorCode.NOT_NULL_VIOLATION, "no")))
    log.store(DONE)

    assert log.read("op-1") == DONE


def test_a_failure_never_replaces_a_result(log: OperationLog, tmp_path: Path) -> None:
    log.store(DONE)
    log.store(OperationLog.failed(REQUEST, CommitError(ErrorCode.OPERATION_ID_REUSED, "no")))

    assert log.read("op-1") == DONE
    refused = JobResult.from_json((tmp_path / "_operations/op-1.refused.json").read_text())
    assert refused.error is not None
    assert refused.error.code == "OPERATION_ID_REUSED"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"version": 99}'])
def test_a_result_that_can_not_be_read_is_none(
    log: OperationLog, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "_operations").mkdir()
    (tmp_path / "_operations/op-1.json").write_bytes(content)

    assert log.read("op-1") is None


def test_the_same_work_of_an_earlier_try() -> None:
    require_same_work(REQUEST, DONE)


@pytest.mark.parametrize(
    ("earlier", "reason"),
    [
        (replace(DONE, request_digest="0"), "its statement or sources differ"),
        (replace(DONE, retries=2), "its number of retries differs"),
        (replace(DONE, try_number=2), "it was try 2, this is try 2"),
        (replace(DONE, try_number=3), "it was try 3, this is try 2"),
    ],
)
def test_other_work_of_the_same_id(earlier: JobResult, reason: str) -> None:
    with pytest.raises(CommitError, match=reason) as raised:
        require_same_work(REQUEST, earlier)

    assert raised.value.code is ErrorCode.OPERATION_ID_REUSED


COUNT_UP = Behaviour(
    "",
    "VALUES (101), (1) AS s(id)",
    (matched(update(n="t.n + 1")), not_matched(insert(id="s.id", req="'r'"))),
)


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("folder", ORDERS, partitioned=True)


def run(harness: Harness, request: JobRequest) -> JobResult:
    return Job(request, harness.spark, harness.open()).run()


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(update_set("", {"n": "n + 1"}, "id = 101"), id="update"),
        pytest.param(delete_from("", "id IN (SELECT min(id) FROM target)"), id="delete"),
    ],
)
@pytest.mark.parametrize("lost", [False, True])
def test_update_and_delete_are_not_done_twice(
    statement: Behaviour, make_table: Callable[..., Harness], *, lost: bool
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    request = request_of(statement, harness)
    first = run(harness, request)
    after_first = harness.state()
    if lost:
        (harness.warehouse / "_operations/operation-1.json").unlink()

    second = run(harness, later(request))

    assert first.status == "committed", first.error
    assert harness.state() == after_first
    assert second.new_snapshot_id == first.new_snapshot_id
    assert second.metrics.updated + second.metrics.deleted == 1
    assert not list(harness.warehouse.rglob("consumer-*")), "the base is guarded no longer"


@pytest.mark.parametrize("lost", [False, True])
def test_a_later_try_finds_what_an_earlier_one_did(harness: Harness, *, lost: bool) -> None:
    request = request_of(COUNT_UP, harness)
    first = run(harness, request)
    after_first = harness.state()
    stored = harness.warehouse / "_operations/operation-1.json"
    if lost:
        stored.unlink()

    second = run(harness, later(request))

    assert harness.state() == after_first
    assert (second.status, second.new_snapshot_id) == ("committed", first.new_snapshot_id)
    assert (second.metrics.updated, second.metrics.inserted) == (1, 1)
    assert (second.base_snapshot_id, second.try_number) == (first.base_snapshot_id, 1)
    assert JobResult.from_json(stored.read_text()) == second


@pytest.mark.slow
@pytest.mark.parametrize("forged", [False, True])
def test_a_result_whose_snapshot_is_gone_is_not_believed(
    make_table: Callable[..., Harness], *, forged: bool
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    request = request_of(COUNT_UP, harness)
    base = harness.state().snapshot_id
    first = run(harness, request)
    stored = harness.warehouse / "_operations/operation-1.json"
    if forged:
        stored.write_text(replace(first, new_snapshot_id=99).to_json())
    maintenance = harness.open().maintenance
    assert maintenance is not None
    spec = RollbackSpec(snapshot_id=base, force=True)
    maintenance.roll_back(TARGET, spec, dag_id="", dry_run=False)

    second = run(harness, later(request))

    assert (second.status, second.error) == ("committed", None)
    assert {row["id"]: row["n"] for row in harness.read()}[101] == 2
    assert JobResult.from_json(stored.read_text()) == second


@pytest.mark.slow
def test_files_that_cannot_be_removed_do_not_fail_what_was_committed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS keeps a file that somebody has open, and with it the folder."""

    def busy(filesystem: pafs.FileSystem, path: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", path)

    monkeypatch.setattr(operations, "remove_folder", busy)
    request = request_of(COUNT_UP, harness)

    first, second = run(harness, request), run(harness, later(request))

    assert (first.status, first.error) == ("committed", None)
    assert (second.status, second.new_snapshot_id) == ("committed", first.new_snapshot_id)
    scratch = [path for path in (harness.warehouse / "_operations").iterdir() if path.is_dir()]
    assert len(scratch) == 1
    assert not list(scratch[0].glob("lease")), "nothing may write there any more"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["same try", "other statement", "no guard"])
def test_an_id_that_was_used_is_refused(harness: Harness, change: str) -> None:
    request = request_of(COUNT_UP, harness)
    if change == "no guard":
        request = replace(request, guards=Guards(max_deleted_rows=Limit(5)))
    first = run(harness, request)
    before = harness.state()
    source = COUNT_UP.source if change == "no guard" else "VALUES (102) AS s(id)"
    other = replace(COUNT_UP, source=source)
    again = request if change == "same try" else later(request_of(other, harness))

    result = run(harness, again)

    assert result.error is not None
    assert result.error.code == "OPERATION_ID_REUSED"
    after = harness.state()
    assert (after.snapshot_id, after.files) == (before.snapshot_id, before.files)
    stored = (harness.warehouse / "_operations/operation-1.json").read_text()
    assert JobResult.from_json(stored) == first


@pytest.mark.slow
def test_a_try_after_a_failure_does_the_work(harness: Harness) -> None:
    good = request_of(COUNT_UP, harness)
    bad = request_of(replace(COUNT_UP, clauses=(matched(update(n="1 / 0")),)), harness)

    assert run(harness, bad).status == "failed"
    assert run(harness, later(good)).status == "committed"
    assert {row["id"]: row["n"] for row in harness.read()}[101] == 2
