"""A run that was given up leaves no file, however long its tasks go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import JobRequest, SqlSource, TableSource
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.lease import Lease, LeasedTask
from spark_jobs.engine.write import statement_run
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.storage import files
from tests.conformance.behaviour import Behaviour, insert, matched, not_matched, update
from tests.conformance.check import OPERATION_ID, request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS
from tests.engine.late_sink import LateSinks, wait_for
from tests.engine.test_conflicts import Writes

MERGE = Behaviour(
    "",
    "VALUES (101), (123), (222), (143), (308), (1), (2), (3), (4) AS s(id)",
    (matched(update(n="1")), not_matched(insert(id="s.id", req="'r'", p="CONCAT('p', s.id)"))),
)
ROWS = (
    "SELECT id, CAST(id AS INT) AS k, 'v' AS v, 1 AS n, 'r' AS req, CONCAT('p', id) AS p "
    "FROM range(20)"
)


def merge(harness: Harness) -> JobRequest:
    return request_of(MERGE, harness)


def insertion(harness: Harness) -> JobRequest:
    source = SqlSource("s", ROWS)
    return JobRequest(OPERATION_ID, TARGET, harness.catalog, InsertIntoSpec("s"), (source,))


def copy(harness: Harness) -> JobRequest:
    """Rows of the table itself, which the tasks that read them write."""
    source = TableSource("s", TARGET)
    return JobRequest(OPERATION_ID, TARGET, harness.catalog, InsertIntoSpec("s"), (source,))


@dataclass(frozen=True)
class TakenOver(Writes):
    """A later try of the operation begins elsewhere when all files are written."""

    warehouse: Path = Path()

    def changed_partitions(self, *arguments: Any) -> Any:
        for scratch in self.warehouse.glob(f"_operations/{OPERATION_ID}-*"):
            Lease(pafs.LocalFileSystem(), str(scratch)).end()
        return self.real.changed_partitions(*arguments)


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    return Lease(pafs.LocalFileSystem(), str(tmp_path / "scratch"))


def rows(path: Path) -> Iterator[pa.RecordBatch]:
    path.parent.mkdir(exist_ok=True)
    path.write_text("a row of somebody")
    yield pa.RecordBatch.from_pydict({"file": [path.name]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("connector", "statement"),
    [
        ("folder", merge),
        ("append-cow", merge),
        ("append-dv", merge),
        ("append-cow", insertion),
        ("append-cow", copy),
    ],
    ids=["folder", "rewritten files", "deletion vectors", "new rows", "copied rows"],
)
def test_a_task_that_writes_after_the_clean_up_removes_its_files(
    make_table: Callable[..., Harness],
    connector: str,
    statement: Callable[[Harness], JobRequest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The driver does not wait for tasks, so that the lease alone keeps the folder clean.
    monkeypatch.setattr(statement_run, "wait_for_stragglers", lambda spark: None)
    harness = make_table(connector, ORDERS, partitioned=True)
    opened = harness.open()
    signals = tmp_path / "signals"
    signals.mkdir()
    late = replace(opened, writes=Writes(opened.writes, wrapped=partial(LateSinks, signals)))
    before = harness.state()

    result = Job(statement(harness), harness.spark, late).run()
    assert harness.state().on_disk == before.on_disk
    (signals / "go").touch()
    wait_for((signals / "written").exists)
    written = int((signals / "written").read_text())
    wait_for(lambda: harness.state().on_disk == before.on_disk)

    assert result.error is not None
    assert result.error.code == "NOT_NULL_VIOLATION"
    assert written > 0
    assert harness.state().operations == {f"{OPERATION_ID}.json"}


@pytest.mark.slow
def test_a_run_that_a_later_try_took_over_does_not_publish(
    make_table: Callable[..., Harness],
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)
    opened = harness.open()
    writes = TakenOver(opened.writes, warehouse=harness.warehouse)
    before = harness.state()

    result = Job(merge(harness), harness.spark, replace(opened, writes=writes)).run()

    after = harness.state()
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("RUN_GIVEN_UP", True)
    assert (after.files, after.on_disk) == (before.files, before.on_disk)
    assert after.operations == {f"{OPERATION_ID}.json"}


def test_rows_of_a_source_that_come_after_the_clean_up_are_removed(
    lease: Lease, tmp_path: Path
) -> None:
    lease.take()
    folder = tmp_path / "scratch/source-1"
    task = LeasedTask(lambda _: rows(folder / "0.parquet"), lease, str(folder))

    running = task([])
    next(running)
    lease.end()
    assert list(running) == []

    assert not folder.exists()


def test_rows_of_a_source_stay_while_the_run_goes_on(lease: Lease, tmp_path: Path) -> None:
    lease.take()
    folder = tmp_path / "scratch/source-1"
    task = LeasedTask(lambda _: rows(folder / "0.parquet"), lease, str(folder))

    assert len(list(task([]))) == 1

    assert (folder / "0.parquet").exists()


def test_a_run_is_given_up_whose_folder_goes_as_it_begins(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another try has begun in the same moment, and removes what earlier ones left."""

    def gone(filesystem: pafs.FileSystem, folder: str) -> None:
        filesystem.create_dir(folder)
        filesystem.delete_dir(folder)

    monkeypatch.setattr(files, "make_folder", gone)

    with pytest.raises(CommitError) as raised:
        lease.take()
    assert raised.value.code is ErrorCode.RUN_GIVEN_UP


def test_a_lease_ends_once_and_for_all(lease: Lease) -> None:
    assert not lease.is_held()
    lease.take()
    lease.require()
    lease.end()
    lease.end()

    with pytest.raises(CommitError) as raised:
        lease.require()
    assert raised.value.code is ErrorCode.RUN_GIVEN_UP
