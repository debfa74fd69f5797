"""Random histories of tasks that apply new files, with kills, other writers, expiry and rollbacks.

Nothing is read by Spark: a run chooses files, writes a row for each, and publishes as jobs do. A
model says which files are applied after each step; the mark must stand for exactly these.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from unittest.mock import patch

import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.marks import mark_name
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.properties import operation_properties
from spark_jobs.contract.request import FileSource, JobRequest, Origin
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.engine.marks.mark_notes import MarkNotes
from spark_jobs.engine.marks.marks import Marks, NewMark
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.source.new_files import ChosenFiles, chosen_files
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.engine.write.statement_run import StatementRun
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.landing.files import FileVersion, LandedFile
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation
from tests.connectors.mark_lakes import Lake

SOURCE = "new"
DAG = "dag"
_NOTHING = cast("Any", None)
_HOUR = 3_600_000_000_000


class KilledError(BaseException):
    """The driver died."""


@dataclass(frozen=True, kw_only=True)
class FilesRun(StatementRun[Any]):
    """A run whose rows are written here."""

    chosen: ChosenFiles = _NOTHING

    def new_marks(self) -> Sequence[NewMark]:
        """The mark that moves, if it does."""
        return () if self.chosen.mark is None else (self.chosen.mark,)


@dataclass
class Begun:
    """A run up to its publication: its files are chosen and its rows written."""

    made: FilesRun
    handle: MergeHandle
    fragments: list[Fragment]
    files: frozenset[int]

    def publish(self) -> int:
        """Commit; the new snapshot."""
        try:
            snapshot = self.made.publish(self.made.table, self.handle, self.fragments, Metrics())
        except JobError as error:
            self.made.abort_unpublished(self.handle, error)
            raise
        self.release()
        return snapshot.snapshot_id

    def release(self) -> None:
        """What a job does once its result is stored."""
        connector, operation = self.made.connector, self.made.operation
        table = connector.metadata.load_table(self.made.table.name)
        for name in operation.marks:
            Marks(connector, table).settle(name)
        connector.writes.release_guard(table, operation.operation_id)


@dataclass
class State:
    """What a snapshot holds: files by task, rows of others, and who committed which files."""

    applied: dict[str, frozenset[int]] = field(default_factory=dict)
    others: frozenset[int] = frozenset()
    commits: tuple[tuple[str, str, frozenset[int]], ...] = ()

    def of(self, task: str) -> frozenset[int]:
        """The files that a task has applied."""
        return self.applied.get(task, frozenset())

    def rows(self) -> Counter[int]:
        """The ids in the table."""
        return Counter([*self.others, *(id_ for each in self.applied.values() for id_ in each)])


class History:
    """A random history that follows from its seed."""

    def __init__(self, lake: Lake, catalog: Any, seed: int, tasks: Sequence[str] = ("a",)) -> None:
        self.lake, self.catalog, self.tasks = lake, catalog, tasks
        self.random = random.Random(seed)
        self.landed: list[LandedFile] = []
        self.state = State()
        self.states: dict[int | None, State] = {None: self.state}
        self.numbers = 0
        self.steps: Counter[str] = Counter()
        self.limits = NewFiles("all", max_files=3)

    def play(self, steps: int) -> Counter[str]:
        """Do so many steps, then apply what is left; returns how often each was done."""
        actions: list[tuple[int, Callable[[], None]]] = [
            *((4, self.land), (6, self.runs), (3, self.is_killed), (2, self.races)),
            *((2, self.others_append), (2, self.expires), (1, self.rolls_back), (1, self.undoes)),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            ((_, action),) = self.random.choices(actions, weights)
            action()
            self.steps[action.__name__] += 1
            self.require_right()
        self.limits = NewFiles("all")
        for task in self.tasks:
            self.apply(task)
            assert self.state.of(task) == frozenset(range(len(self.landed)))
        self.require_right()
        return self.steps

    def land(self) -> None:
        """Files land, some of them late: they are older than those that were applied."""
        for _ in range(self.random.randint(1, 5)):
            self.land_at(len(self.landed) + 10 - self.random.randint(0, 5))

    def land_at(self, *hours: int) -> None:
        """Files land that were modified at these hours."""
        for each in hours:
            path = f"/landing/{len(self.landed)}.csv"
            self.landed.append(LandedFile(path, path, FileVersion(10, each * _HOUR)))

    def runs(self) -> None:
        """A run, and perhaps a retry of it that finds its commit."""
        task = self._task()
        operation_id = self.apply(task)
        if operation_id is not None and self.random.random() < 0.3:
            assert self._find(operation_id) is not None

    def is_killed(self) -> None:
        """A run is killed at one of its steps; then it is retried, or cleared."""
        task, operation_id = self._task(), self._operation()
        begun = self.begin(task, operation_id)
        if begun is None:
            return
        step = self.random.choice(["store", "note", "noted", "publish", "published", "settled"])
        with killed_at(step, self.lake.connector), pytest.raises(KilledError):
            begun.publish()
        if step in ("published", "settled"):
            self._committed(task, operation_id, begun.files)
        if self.random.random() < 0.3:
            self.others_append()
        is_cleared = self.random.random() < 0.5
        done = None if is_cleared else self._find(operation_id)
        assert is_cleared or (done is not None) == (step in ("published", "settled"))
        if done is not None:
            begun.release()
        else:
            self.apply(task, None if is_cleared else operation_id)

    def races(self) -> None:
        """Two drivers of a task begin on the same snapshot: the second one meets a conflict."""
        task = self._task()
        first, second = self._operation(), self._operation()
        one, other = self.begin(task, first), self.begin(task, second)
        if one is None or other is None:
            return
        one.publish()
        self._committed(task, first, one.files)
        with pytest.raises(CommitError) as caught:
            other.publish()
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
        self.apply(task, second)

    def others_append(self) -> None:
        """Another engine adds rows."""
        self.numbers += 1
        self.lake.append([-self.numbers])
        self._became(
            State(self.state.applied, self.state.others | {-self.numbers}, self.state.commits)
        )

    def expires(self) -> None:
        """Another engine expires snapshots, perhaps all but the latest."""
        self.lake.expire(self.random.randint(1, 4))

    def rolls_back(self) -> None:
        """The table is rolled back to one of its last snapshots."""
        table = self._table()
        history = list(self.lake.connector.writes.history(table).entries)[1:5]
        known = [each.snapshot_id for each in history if each.snapshot_id in self.states]
        if not known:
            return
        snapshot_id = self.random.choice(known)
        from spark_jobs.contract.maintenance import RollbackSpec

        self.done(RollbackSpec(snapshot_id, force=True))
        self.state = self.states[snapshot_id]

    def undoes(self) -> None:
        """One of the last runs is undone, if it can be; perhaps the undo is undone at once."""
        if not self.state.commits:
            return
        at = self.random.randint(max(0, len(self.state.commits) - 3), len(self.state.commits) - 1)
        task, operation_id, files = self.state.commits[at]
        undo = self.undo(f"run-{operation_id}")
        if undo is None:
            return
        before, others = self.state, self.state.commits[at + 1 :]
        assert task not in [each for each, _, _ in others], "what is taken back is lost"
        self.steps["undone"] += 1
        commits = (*self.state.commits[:at], *others)
        applied = {**self.state.applied, task: self.state.of(task) - files}
        self._became(State(applied, self.state.others, commits))
        self.require_right()
        if self.random.random() < 0.5:
            self.others_append()
        if self.random.random() < 0.5 and self.undo(f"care-{undo}") is not None:
            self.steps["undone twice"] += 1
            self._became(State(before.applied, self.state.others, before.commits))
        elif self.apply(task) is not None:
            assert self.undo(f"care-{undo}") is None, "the files were applied twice"

    def undo(self, run_id: str) -> str | None:
        """Undo a run; the operation of the undo, None: it was refused."""
        from spark_jobs.contract.undo import UndoRunSpec

        result = self.done(UndoRunSpec(DAG, run_id, (str(self.lake.name),), "skip"))
        assert result.undo is not None
        return result.operation_id if result.undo.tables[0].outcome == "undone" else None

    def apply(self, task: str, operation_id: str | None = None) -> str | None:
        """A run that succeeds; its operation, None: nothing was new."""
        operation_id = operation_id or self._operation()
        begun = self.begin(task, operation_id)
        if begun is None:
            return None
        begun.publish()
        self._committed(task, operation_id, begun.files)
        return operation_id

    def begin(self, task: str, operation_id: str) -> Begun | None:
        """A run up to its publication; None: nothing is new."""
        table, name = self._table(), self.mark(task)
        source = FileSource(SOURCE, "/landing", "csv", new_files=self.limits)
        listed = SourceFiles(source, pafs.LocalFileSystem(), tuple(self.landed))
        marks = Marks(self.lake.connector, table)
        marks.settle(name)
        chosen = chosen_files(listed, self.limits, marks, name)
        files = frozenset(self.landed.index(each) for each in chosen.files.files)
        expected = frozenset(range(len(self.landed))) - self.state.of(task)
        assert files <= expected, f"applied twice: {files - expected}"
        assert len(files) == min(len(expected), self.limits.max_files or len(expected))
        if chosen.mark is None:
            return None
        made = self.made(task, operation_id, table, name, chosen)
        handle = self.handle(made)
        return Begun(made, handle, self.written(handle, table, sorted(files)), files)

    def require_right(self) -> None:
        """Marks and rows are those of the model."""
        table = self._table()
        for task in self.tasks:
            name = self.mark(task)
            found = Marks(self.lake.connector, table).newest(name)
            expected = [self.landed[each] for each in self.state.of(task)]
            if found is None:
                assert not expected
                continue
            storage = self.lake.connector.storage
            applied = AppliedFiles.read(storage, name, found.document)
            assert all(map(applied.has, expected))
            assert len(applied) == len(expected)
        assert self.lake.ids() == self.state.rows()

    def made(
        self, task: str, operation_id: str, table: TableHandle, name: str, chosen: ChosenFiles
    ) -> FilesRun:
        request = JobRequest(
            operation_id,
            self.lake.name,
            self.catalog,
            MergeSpec(SOURCE, "true", (_insert(),), "t", "s"),
            sources=(chosen.files.source,),
            origin=Origin(DAG, f"run-{operation_id}", task),
        )
        properties = operation_properties(request, table.snapshot_id)
        operation = Operation(operation_id, request.digest(), properties, marks=frozenset((name,)))
        return FilesRun(
            connector=self.lake.connector,
            table=table,
            spec=_NOTHING,
            operation=operation,
            options=JobOptions(),
            scratch=f"_operations/{operation_id}",
            progress=Progress(),
            last_look=_NOTHING,
            fence=_NOTHING,
            chosen=chosen,
        )

    def written(
        self, handle: MergeHandle, table: TableHandle, ids: Sequence[int]
    ) -> list[Fragment]:
        """Rows with these ids, as a sink task stores them."""
        sink = handle.sinks.open("task")
        sink.store_merged_rows(self.lake.rows(table, ids))
        return [Fragment.from_json(each.to_json()) for each in sink.finish()]

    def handle(self, made: FilesRun) -> MergeHandle:
        write = MergeWrite(made.operation, (), ((),), (), 2**26, read_set=lambda _files: ())
        return self.lake.connector.writes.begin_merge(made.table, write)

    def _committed(self, task: str, operation_id: str, files: frozenset[int]) -> None:
        applied = {**self.state.applied, task: self.state.of(task) | files}
        commits = (*self.state.commits, (task, operation_id, files))
        self._became(State(applied, self.state.others, commits))

    def _became(self, state: State) -> None:
        self.state = state
        self.states[self._table().snapshot_id] = state

    def done(self, statement: Any) -> JobResult:
        operation_id = self._operation()
        origin = Origin(DAG, f"care-{operation_id}", "care")
        request = JobRequest(operation_id, self.lake.name, self.catalog, statement, origin=origin)
        result = run(request, None)
        assert result.error is None, result.error
        return result

    def _find(self, operation_id: str) -> Any:
        return self.lake.connector.writes.find_commit(self._table(), operation_id)

    def _table(self) -> TableHandle:
        return self.lake.connector.metadata.load_table(self.lake.name)

    def mark(self, task: str) -> str:
        return mark_name(Origin(DAG, "", task), SOURCE)

    def _task(self) -> str:
        return self.random.choice(self.tasks)

    def _operation(self) -> str:
        self.numbers += 1
        return f"op-{self.numbers}"


def _insert() -> Any:
    from tests.conformance.behaviour import insert, not_matched

    return not_matched(insert(id="s.id"))


@contextmanager
def killed_at(step: str, connector: Connector) -> Iterator[None]:
    """The driver dies at this step of a publication."""
    owner, name = {
        "store": (AppliedFiles, "store"),
        "note": (MarkNotes, "add"),
        "noted": (MarkNotes, "add"),
        "publish": (type(connector.writes), "finish_merge"),
        "published": (type(connector.writes), "finish_merge"),
        "settled": (Marks, "settle"),
    }[step]
    real = getattr(owner, name)

    def dying(*arguments: Any) -> Any:
        if step in ("noted", "published", "settled"):
            real(*arguments)
        raise KilledError(step)

    with patch.object(owner, name, dying):
        yield
