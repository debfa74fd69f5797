"""What every format's undo of a run needs: its commits, their net change, refusals, the report.

Driver only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from spark_jobs.contract.properties import (
    BASE_SNAPSHOT_ID,
    DAG_ID,
    MAP_INDEX,
    METRICS,
    OPERATION_ID,
    RUN_ID,
    STATEMENT,
    TASK_ID,
    metrics_property,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import Metrics
from spark_jobs.contract.undo import TableUndo, UndoneCommit
from spark_jobs.contract.undone import (
    UNDONE_DAG,
    UNDONE_RUN,
    Undone,
    is_of_run,
    undone_operations,
    undone_properties,
)
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError
from spark_jobs.spi.undo import Undoing

# How many commits a report names; the longest list of operations that a snapshot records, in bytes.
_NAMED: Final = 100
_LONGEST: Final = 65_536
_COUNTS: Final = ("inserted", "updated", "deleted")

K = TypeVar("K")
E = TypeVar("E")
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A snapshot of a table's history: ``native`` is the library's, ``kind`` what it says it did.

    ``committed`` is in milliseconds since 1970; ``user`` who made it, as the format knows it.
    """

    snapshot_id: int
    committed: int
    properties: Mapping[str, str]
    native: Any = field(repr=False)
    kind: str = ""
    user: str = ""

    def __str__(self) -> str:
        properties = self.properties
        if properties.get(OPERATION_ID):
            origin = ((DAG_ID, "DAG"), (RUN_ID, "run"), (TASK_ID, "task"))
            task = ", ".join(
                f"{word} {properties[key]}" for key, word in origin if properties.get(key)
            )
            by = f"operation {properties[OPERATION_ID]}{f' of {task}' if task else ''}"
        else:
            by = self.user or "another writer"
        return f"snapshot {self.snapshot_id} ({self.kind}) by {by}"


def commits_of_run(history: Sequence[PastCommit], undoing: Undoing) -> list[PastCommit]:
    """Those of a history, newest first, that the run made and nobody has taken back.

    None if it would change nothing to take them back: of an undo that was undone in another way.
    """
    undone = Undone()
    commits = [
        commit
        for commit in history
        if undone.counts(commit.properties)
        and is_of_run(commit.properties, undoing.dag_id, undoing.run_id)
    ]
    operations = {each.properties[OPERATION_ID] for each in commits}
    is_void = _counting(history, ()) == _counting(history, operations)
    return [] if is_void else commits


def _counting(history: Sequence[PastCommit], operations: Collection[str]) -> set[int]:
    """The ids of the snapshots that count and undo nothing, once ``operations`` are undone."""
    undone = Undone(operations)
    return {
        commit.snapshot_id
        for commit in history
        if undone.counts(commit.properties) and not undone_operations(commit.properties)
    }


class NetChange(Generic[K, E]):
    """What several commits changed in all: entries of files by key, and when they were touched.

    ``made`` has the keys of all files that they ever added.
    """

    def __init__(self) -> None:
        self.added: dict[K, E] = {}
        self.removed: dict[K, E] = {}
        self.touched: dict[K, int] = {}
        self.made: set[K] = set()

    def take(self, number: int, added: Mapping[K, E], removed: Mapping[K, E]) -> None:
        """Take the next commit, which has this ``number`` in the history."""
        for key, entry in removed.items():
            if self.added.pop(key, None) is None:
                self.removed[key] = entry
            self.touched[key] = number
        self.made |= added.keys()
        for key, entry in added.items():
            if self.removed.pop(key, None) is None:
                self.added[key] = entry
            self.touched[key] = number


class InTheWayError(Exception):
    """A later commit built on what is to be taken back: it did ``what`` to ``file``."""

    def __init__(self, commit: PastCommit, what: str, file: str) -> None:
        super().__init__(f"{commit} {what}: {file}")
        self.commit = commit


class Chains:
    """Which commits of a history, newest first, took back which.

    Files come back as copies, so that an undo that was itself undone, or a commit that was undone,
    may stand between a run and the files that have its rows now.
    """

    def __init__(self, history: Sequence[PastCommit]) -> None:
        undone = Undone()
        self._counts = {e.snapshot_id: undone.counts(e.properties) for e in history}
        self._took = {
            commit.snapshot_id: _taken_back(history[number + 1 :], commit)
            for number, commit in enumerate(history)
            if undone_operations(commit.properties)
        }

    def planned(self, commits: Sequence[PastCommit], plan: Callable[[set[int]], P]) -> P:
        """``plan`` for the ids of ``commits``, and of pairs in the way that change nothing in all.

        Raises:
            InTheWayError: raised by ``plan`` for a commit that counts.
        """
        ids = self._followed({each.snapshot_id for each in commits})
        while True:
            try:
                return plan(ids)
            except InTheWayError as error:
                pair = self._pair(error.commit.snapshot_id)
                if pair <= ids:
                    raise
                ids |= pair

    def _pair(self, commit: int) -> set[int]:
        """A commit, and what else changes nothing in all together with it; none if it counts."""
        took = self._took.get(commit, frozenset())
        pair = self._followed(set(took) if self._counts[commit] else {commit})
        is_void = not any(self._counts[each] for each in pair - self._took.keys())
        return pair if is_void and commit in pair else set()

    def _followed(self, ids: set[int]) -> set[int]:
        """The commits, those that took one of them back, and what else these took back, and so on.

        Of ``ids``, not what they took back themselves.
        """
        followed = set(ids)
        while (
            more := {
                each
                for undo, took in self._took.items()
                if undo not in ids and took & followed
                for each in (undo, *took)
            }
            - followed
        ):
            followed |= more
        return followed


def _taken_back(before: Sequence[PastCommit], undo: PastCommit) -> frozenset[int]:
    """The ids of the snapshots of the history ``before`` an undo that it took back."""
    undone, operations = Undone(), undone_operations(undo.properties)
    return frozenset(
        commit.snapshot_id
        for commit in before
        if undone.counts(commit.properties) and commit.properties.get(OPERATION_ID) in operations
    )


def planned_undo(
    name: TableName,
    history: Sequence[PastCommit],
    commits: Sequence[PastCommit],
    plan: Callable[[set[int]], P],
) -> P:
    """``plan`` for the ids of ``commits``, and of what in the way changes nothing in all.

    Raises:
        CommitError: COMMITS_OF_OTHERS.
        JobError: raised by ``plan``.
    """
    refuse_repeated(name, history, commits)
    try:
        return Chains(history).planned(commits, plan)
    except InTheWayError as error:
        raise in_the_way(name, error) from error


def in_the_way(name: TableName, error: InTheWayError) -> CommitError:
    """The refusal for a later commit that built on what is to be taken back."""
    return CommitError(
        ErrorCode.COMMITS_OF_OTHERS,
        f"{name}: the run cannot be undone, because {error}.",
        "Undo that commit first, if it is one of a run; or change the rows by a statement.",
    )


def refuse_repeated(
    name: TableName, history: Sequence[PastCommit], commits: Sequence[PastCommit]
) -> None:
    """Refuse to undo an undo after which the run has committed again.

    Raises:
        CommitError: COMMITS_OF_OTHERS, naming the commit.
    """
    undone = Undone()
    later: list[PastCommit] = []
    for commit in history:
        if not undone.counts(commit.properties):
            continue
        properties = commit.properties
        if commit in commits and UNDONE_RUN in properties:
            run = properties[UNDONE_DAG], properties[UNDONE_RUN]
            again = [e for e in later if is_of_run(e.properties, *run)]
            if again:
                raise in_the_way(
                    name, InTheWayError(again[-1], "has done the work of that run again", run[1])
                )
        later.append(commit)


def files_expired(name: TableName, path: str) -> CommitError:
    """The refusal for a file that must come back, and is gone."""
    return CommitError(
        ErrorCode.COMMIT_HISTORY_EXPIRED,
        f"{name}: the run cannot be undone, because a file that it removed is gone: {path}. "
        "The snapshots before the run have expired.",
        "Change the rows by a statement; keep snapshots longer (snapshot expiry).",
    )


def unsupported(name: TableName, reason: str) -> NotSupportedError:
    """The refusal for a table whose commits are not undone."""
    return NotSupportedError(
        f"{name}: the run cannot be undone: {reason}.",
        "Change the rows by a statement, or roll the table back (RollbackOperator).",
    )


def base_report(
    name: TableName, commits: Sequence[PastCommit], oldest: PastCommit | None, is_whole: bool
) -> TableUndo:
    """The report on ``commits``, newest first, before files are counted.

    ``oldest`` is the oldest snapshot that is known; ``is_whole``: there was none before.
    """
    undone_commits = [_undone_commit(each) for each in commits]
    counts = {count: sum(getattr(each, count) for each in undone_commits) for count in _COUNTS}
    return TableUndo(
        table=str(name),
        outcome="planned" if commits else "unchanged",
        commits=tuple(undone_commits[:_NAMED]),
        oldest=None if is_whole or oldest is None else oldest.snapshot_id,
        **counts,
    )


def recorded_properties(
    name: TableName, undoing: Undoing, commits: Sequence[PastCommit], base: int | None
) -> dict[str, str]:
    """What the snapshot of the undo records; its counts are those of the commits, the other way.

    Raises:
        NotSupportedError: they are too many to be named.
    """
    undone_commits = [_undone_commit(each) for each in commits]
    metrics = Metrics(
        inserted=sum(each.deleted for each in undone_commits),
        updated=sum(each.updated for each in undone_commits),
        deleted=sum(each.inserted for each in undone_commits),
    )
    operations = {each.operation_id for each in undone_commits}
    undone = undone_properties(undoing.dag_id, undoing.run_id, operations)
    if sum(map(len, undone.values())) > _LONGEST:
        raise unsupported(name, f"it has {len(operations):,} operations in this table")
    return {
        **undoing.properties,
        BASE_SNAPSHOT_ID: "" if base is None else str(base),
        **undone,
        **metrics_property(metrics),
    }


def _undone_commit(commit: PastCommit) -> UndoneCommit:
    properties = commit.properties
    index = properties.get(MAP_INDEX, "")
    return UndoneCommit(
        snapshot_id=commit.snapshot_id,
        committed=commit.committed,
        operation_id=properties.get(OPERATION_ID, ""),
        statement=properties.get(STATEMENT, ""),
        task_id=properties.get(TASK_ID, ""),
        map_index=int(index) if index.isdecimal() else -1,
        **_counts(properties),
    )


def _counts(properties: Mapping[str, str]) -> dict[str, int]:
    """The rows that a statement changed; other releases may have written other metrics."""
    try:
        found = json.loads(properties.get(METRICS) or "{}")
    except (ValueError, RecursionError):
        found = {}
    known = found if isinstance(found, dict) else {}
    return {name: each if isinstance(each := known.get(name), int) else 0 for name in _COUNTS}
