"""Landed files that no commit of the task has applied: each is applied once, by age."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.deduplication import ALL_ROWS, DeduplicatedSource
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.marks import PREFIX
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import FileSource, JobRequest, Origin
from spark_jobs.contract.result import JobResult, SourceMetrics
from spark_jobs.contract.statements import ColumnSpec, MergeSpec, Statement
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import insert, matched, not_matched, update
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

TABLE = SeedTable("incremental", (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING")))
APPEND = InsertIntoSpec("new", by_name=True)
UPDATE = matched(update(v="s.v"))
MERGE = MergeSpec("new", "t.id = s.id", (UPDATE, not_matched(insert(id="s.id", v="s.v"))), "t", "s")


@dataclass
class Task:
    """A task that applies the new files of a folder to a table; each run is another operation."""

    harness: Harness
    folder: Path
    statement: Statement = APPEND
    new_files: NewFiles = field(default_factory=lambda: NewFiles("all"))
    format: str = "csv"
    name: str = "load"
    runs: int = 0

    def land(self, name: str, *ids: int, at: int | None = None) -> Path:
        """A file with rows of these ids, modified ``at`` (seconds)."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / name
        path.write_text("id,v\n" + "".join(f"{each},{name}\n" for each in ids))
        if at is not None:
            os.utime(path, (at, at))
        return path

    def request(self, operation_id: str | None = None, **more: Any) -> JobRequest:
        """The next run, or another try of one."""
        self.runs += 1
        source = FileSource(
            *("new", str(self.folder), self.format),
            options={"header": "true"} if self.format == "csv" else {},
            schema="id BIGINT, v STRING",
            new_files=self.new_files,
        )
        made = JobRequest(
            operation_id=operation_id or f"{self.name}-{self.runs}",
            target=TARGET,
            catalog=self.harness.catalog,
            statement=self.statement,
            sources=(source,),
            origin=Origin("dag", f"run-{self.runs}", self.name, try_number=self.runs),
        )
        return replace(made, **more)

    def run(self, **more: Any) -> JobResult:
        """Run it; raises if it fails."""
        result = Job(self.request(**more), self.harness.spark, self.harness.open()).run()
        assert result.error is None, result.error
        return result

    def failed(self, **more: Any) -> str:
        """Run it; the code of its failure."""
        result = Job(self.request(**more), self.harness.spark, self.harness.open()).run()
        assert result.error is not None, result
        return result.error.code

    def ids(self) -> list[int]:
        """The ids in the table."""
        return sorted(row["id"] for row in self.harness.read())

    def read_of(self, result: JobResult) -> tuple[int, int]:
        """Files that were read, and that were left."""
        found: SourceMetrics = result.metrics.sources["new"]
        return found.files, found.left_files


@pytest.fixture
def task(make_table: Callable[..., Harness], tmp_path: Path, kind: str) -> Task:
    return Task(make_table(kind, TABLE, partitioned=False), tmp_path / "landing")


@pytest.fixture
def kind() -> str:
    return "append-cow"


@pytest.mark.slow
def test_a_source_that_is_deduplicated_later_keeps_its_mark(task: Task) -> None:
    task.statement = MERGE
    task.land("a.csv", 1, 2)
    task.run()
    task.land("b.csv", 2, 3, 3)
    (files,) = task.request().sources
    named = replace(files, name=f"new{ALL_ROWS}")
    last = DeduplicatedSource("new", named.name, ("id",))

    result = task.run(sources=(named, last))
    again = task.run(sources=(named, last))

    assert result.metrics.sources[named.name].files == 1
    assert (result.metrics.updated, result.metrics.inserted) == (1, 1)
    assert task.ids() == [1, 2, 3]
    assert again.status == "unchanged"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-cow"])
@pytest.mark.parametrize("statement", [APPEND, MERGE], ids=["insert", "merge"])
def test_a_preview_of_another_task_is_approved_in_each_run(
    task: Task, statement: Statement
) -> None:
    """Its dry run goes by the mark of the task that it foretells, and moves none."""
    task.statement = statement
    for number in range(3):
        task.land(f"{number}.csv", number)
        origin = Origin("dag", f"run-{number}", "preview", dry_run_of="load")

        preview = task.run(dry_run=True, origin=origin, operation_id=f"preview-{number}")
        done = task.run(approved=preview.ticket)

        assert (task.read_of(preview), preview.metrics.inserted) == ((1, 0), 1)
        assert (done.status, task.ids()) == ("committed", [*range(number + 1)])
    own = task.run(dry_run=True, origin=replace(origin, dry_run_of=""), operation_id="own")
    assert task.read_of(own) == (3, 0)
    plan = task.run(dry_run=True, plan_only=True, origin=origin, operation_id="plan")
    assert task.read_of(plan) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-cow"])
def test_each_file_is_applied_once_the_oldest_first(task: Task) -> None:
    task.new_files = NewFiles("all", max_files=2)
    for number in range(5):
        task.land(f"{9 - number}.csv", number, at=1_000_000 + number)

    first = task.run()

    assert (task.read_of(first), task.ids()) == ((2, 3), [0, 1])
    assert first.metrics.sources["new"].left_bytes == 3 * len("id,v\n0,9.csv\n")
    assert task.read_of(task.run()) == (2, 1)
    task.land("late.csv", 7, at=999)
    assert (task.read_of(task.run()), task.ids()) == ((2, 0), [0, 1, 2, 3, 4, 7])
    before = task.harness.latest_snapshot()
    last = task.run()
    assert (last.status, task.read_of(last)) == ("unchanged", (0, 0))
    assert task.harness.latest_snapshot() == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append-cow", "iceberg-cow"])
def test_what_a_first_run_calls_applied_is_in_a_snapshot_without_rows(task: Task) -> None:
    task.new_files = NewFiles("now")
    task.land("old.csv", 1)

    first = task.run()

    assert (first.status, task.read_of(first), task.ids()) == ("committed", (0, 0), [])
    task.land("new.csv", 2)
    assert task.run().metrics.inserted == 1
    assert task.ids() == [2]


@pytest.mark.slow
def test_a_start_in_time(task: Task) -> None:
    task.new_files = NewFiles("2026-01-01T01:00:00+01:00")
    task.land("before.csv", 1, at=1_767_225_599)
    task.land("since.csv", 2, at=1_767_225_600)
    task.run()
    assert task.ids() == [2]
    task.land("later.csv", 3, at=1_000)
    task.run()
    assert task.ids() == [2, 3]


@pytest.mark.slow
def test_files_without_rows_that_change_anything_move_the_mark(task: Task) -> None:
    task.statement = MergeSpec("new", "t.id = s.id", (UPDATE,), "t", "s")
    task.land("a.csv", 1)
    result = task.run()
    assert (result.status, result.metrics.updated) == ("committed", 0)
    assert task.run().status == "unchanged"


@pytest.mark.slow
def test_replaced_files(task: Task) -> None:
    path = task.land("a.csv", 1)
    task.run()
    task.land("a.csv", 1, 2)
    assert task.failed() == "SOURCE_REPLACED"
    task.statement, task.new_files = MERGE, NewFiles("all", "again")
    assert task.run().metrics.inserted == 1
    assert task.ids() == [1, 2]
    path.unlink()
    assert task.run().status == "unchanged"


@pytest.mark.slow
def test_tasks_have_marks_of_their_own(task: Task) -> None:
    task.land("a.csv", 1)
    other = replace(task, name="other")
    task.run()
    other.run()
    assert task.ids() == [1, 1]
    assert [task.run().status, other.run().status] == ["unchanged", "unchanged"]


@pytest.mark.slow
def test_a_dry_run_moves_nothing_and_an_approved_run_reads_the_same_files(task: Task) -> None:
    task.land("a.csv", 1)
    dry = task.run(dry_run=True)
    assert (dry.metrics.inserted, task.ids()) == (1, [])
    assert not list(task.harness.warehouse.glob("_marks/*"))
    task.land("b.csv", 2)
    assert task.failed(approved=dry.ticket) == "APPROVAL_STALE"
    (task.folder / "b.csv").unlink()
    assert task.run(approved=dry.ticket).status == "committed"
    assert task.ids() == [1]


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "orc", "json"])
def test_other_formats(task: Task, format_: str) -> None:
    task.format = format_
    frame = task.harness.spark.createDataFrame([(1, "a")], "id BIGINT, v STRING")
    frame.write.format(format_).save(str(task.folder))
    assert task.run().metrics.inserted == 1
    frame.write.format(format_).mode("append").save(str(task.folder))
    assert task.run().metrics.inserted == 1
    assert task.ids() == [1, 1]


@pytest.mark.slow
def test_a_retry_finds_its_commit_and_a_rollback_takes_the_mark_back(task: Task) -> None:
    task.land("a.csv", 1)
    done = task.run(operation_id="op")
    assert task.run(operation_id="op").new_snapshot_id == done.new_snapshot_id
    assert task.ids() == [1]
    properties = task.harness.open().writes.recall(
        task.harness.open().metadata.load_table(TARGET), done.new_snapshot_id or 0
    )
    assert properties is not None
    assert len([name for name in properties.properties if name.startswith(PREFIX)]) == 1
