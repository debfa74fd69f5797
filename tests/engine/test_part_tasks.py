"""What a task of a compaction leaves: fragments of all its parts, or no file at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.engine.compaction import part_tasks
from spark_jobs.engine.compaction.part_tasks import PartOutcome, PartTasks
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.errors import CatalogError, CommitError, ErrorCode
from spark_jobs.spi.compaction import CompactionPart
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True)
class Files:
    """Implements ``PartCompactor``: a part is what is done, then a file is written."""

    folder: Path

    def compact(self, native: Callable[[], None], task_key: str) -> Sequence[Fragment]:
        native()
        (self.folder / task_key).touch()
        return [Fragment({"name": task_key}, files_added=1)]

    def discard(self, fragments: Sequence[Fragment]) -> None:
        for fragment in fragments:
            (self.folder / fragment.document["name"]).unlink()


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    lease = Lease(pafs.LocalFileSystem(), str(tmp_path / "scratch"))
    lease.take()
    return lease


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(part_tasks, "task_key", lambda: "task")
    path = tmp_path / "files"
    path.mkdir()
    return path


def nothing() -> None:
    pass


def unreadable() -> None:
    raise CatalogError(ErrorCode.DATA_FILE_UNREADABLE, "it is <damaged>", "Look.")


def run(folder: Path, lease: Lease, *parts: Callable[[], None]) -> list[PartOutcome]:
    numbered = tuple(CompactionPart(n, "[]", 1, native) for n, native in enumerate(parts))
    tasks = PartTasks(Files(folder), (numbered,), lease)
    batches: list[Any] = list(tasks([pa.record_batch({"id": [0]})]))
    return [PartOutcome.of(*row.values()) for batch in batches for row in batch.to_pylist()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_part_has_an_outcome(folder: Path, lease: Lease) -> None:
    first, second, third = run(folder, lease, nothing, unreadable, nothing)

    assert [each.part for each in (first, second, third)] == [0, 1, 2]
    assert first.fragments == (Fragment({"name": "task-0"}, files_added=1),)
    assert (first.error, second.fragments) == (None, ())
    assert second.error is not None
    assert (second.error.code, second.error.message, second.error.remedy) == (
        ErrorCode.DATA_FILE_UNREADABLE,
        "it is <damaged>",
        "Look.",
    )
    assert names(folder) == ["task-0", "task-2"]


def test_a_task_that_fails_leaves_nothing(folder: Path, lease: Lease) -> None:
    def fails() -> None:
        raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        run(folder, lease, nothing, nothing, fails)
    assert names(folder) == []


def test_a_task_that_was_given_up_leaves_nothing(folder: Path, lease: Lease) -> None:
    with pytest.raises(CommitError, match="RUN_GIVEN_UP"):
        run(folder, lease, nothing, lease.end)
    assert names(folder) == []


def test_it_begins_nothing_without_the_lease(folder: Path, lease: Lease) -> None:
    lease.end()
    with pytest.raises(CommitError, match="RUN_GIVEN_UP"):
        run(folder, lease, nothing)
    assert names(folder) == []
