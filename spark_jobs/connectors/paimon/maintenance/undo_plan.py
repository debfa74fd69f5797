"""What an undo changes in a table, and what of others is in the way. Driver only.

The net change of the run's snapshots is turned round, file by file. Files that come back are copies
under other names: an expiry of Paimon's Java (``SnapshotDeletion``) removes each file that an
expired snapshot removed, also one that a later snapshot has added again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_jobs.connectors.paimon.commit.history import newest_first
from spark_jobs.connectors.paimon.format.locations import path_beside
from spark_jobs.connectors.paimon.format.manifest_entries import ADD, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.format.vectors import VectorLocation
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files, stored_snapshots
from spark_jobs.connectors.paimon.library.data_files import key_range
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.maintenance.undo_refusals import (
    refuse_rebucketed,
    refuse_table,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.undo import (
    InTheWayError,
    NetChange,
    PastCommit,
    commits_of_run,
    files_expired,
    planned_undo,
    unsupported,
)
from spark_jobs.contract.request import TableName
from spark_jobs.spi.undo import Undoing

Net = NetChange[Any, Any]
Vectors = Mapping[str, VectorLocation]


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """A data file that comes back, where it is, and the rows of it that were marked."""

    entry: Any
    path: str
    vector: VectorLocation | None


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The change that takes back ``commits`` (newest first) of the run from ``table``.

    ``gone`` are the entries of files that the run added, ``back`` files that it removed. ``marks``
    are the vectors that files which stay had before, by name; None: they had none.
    """

    table: PinnedTable
    commits: Sequence[PastCommit]
    history: Sequence[PastCommit]
    gone: Sequence[Any] = ()
    back: Sequence[RestoredFile] = ()
    marks: Mapping[str, VectorLocation | None] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the run changed nothing, in all."""
        return not (self.gone or self.back or self.marks)


@dataclass(frozen=True, slots=True)
class _Step:
    """A commit, the entries of files that it added and removed, and vectors around it."""

    number: int
    commit: PastCommit
    entries: Sequence[Any]
    before: Vectors
    after: Vectors

    @property
    def remarked(self) -> frozenset[str]:
        """The names of data files whose vectors it changed."""
        if self.before is self.after:
            return frozenset()
        names = self.before.keys() | self.after.keys()
        return frozenset(n for n in names if _extent(self.before, n) != _extent(self.after, n))

    @property
    def added(self) -> Sequence[Any]:
        return [each for each in self.entries if each.kind == ADD]

    @property
    def removed(self) -> Sequence[Any]:
        return [each for each in self.entries if each.kind != ADD]


def history_of(table: PinnedTable) -> list[PastCommit]:
    """The snapshots that have not expired, newest first."""
    ids = stored_snapshots.snapshot_ids(table.table)
    newest = 0 if table.snapshot is None else table.snapshot.id
    found = newest_first(table.table, [each for each in ids if each <= newest])
    return [
        PastCommit(
            snapshot.id,
            int(snapshot.time_millis),
            snapshot.properties or {},
            snapshot,
            kind=snapshot.commit_kind,
            user=f"user {snapshot.commit_user}",
        )
        for snapshot, _ in found
    ]


def planned(name: TableName, table: PinnedTable, undoing: Undoing) -> UndoPlan:
    """The plan for the table as it is.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        CommitError: COMMITS_OF_OTHERS, COMMIT_HISTORY_EXPIRED.
        NotSupportedError: gives the reason.
    """
    history = history_of(table)
    commits = commits_of_run(history, undoing)
    if not commits:
        return UndoPlan(table, (), history)
    refuse_table(name, table)
    planner = _Planner(name, table, history, commits)
    return planned_undo(name, history, commits, planner.plan)


@dataclass(slots=True)
class _Planner:
    """Plans with the changes of the snapshots that it is told to take back."""

    name: TableName
    table: PinnedTable
    history: Sequence[PastCommit]
    commits: Sequence[PastCommit]

    def plan(self, own: Collection[int]) -> UndoPlan:
        """The plan that takes back the snapshots of these ids; raises InTheWayError."""
        name, table = self.name, self.table
        first = next(each for each in self.history[::-1] if each.snapshot_id in own)
        steps = list(_steps(name, table, self.history, first))
        net, marks, touched_in = Net(), dict[str, VectorLocation | None](), dict[str, int]()
        for step in steps:
            if step.commit.snapshot_id in own:
                net.take(step.number, _by_key(step.added), _by_key(step.removed))
                for file_name in (*step.remarked, *(e.file.file_name for e in step.removed)):
                    marks.setdefault(file_name, step.before.get(file_name))
                    touched_in.setdefault(file_name, step.number)
        others = [each for each in steps if each.commit.snapshot_id not in own]
        _refuse_touched(net, touched_in, others)
        if table.keyed is not None:
            _refuse_overlaps(net, others)
        back = [
            RestoredFile(each, _path(table, each), marks.get(each.file.file_name))
            for each in net.removed.values()
        ]
        refuse_rebucketed(name, table, [each.entry for each in back], self.commits)
        gone, kept_marks = list(net.added.values()), _kept_marks(net, marks, steps[-1].after)
        if not table.marks_rows and any([*kept_marks.values(), *(each.vector for each in back)]):
            raise unsupported(name, "the table has no deletion vectors any more")
        return UndoPlan(table, self.commits, self.history, gone, back, kept_marks)


def _kept_marks(
    net: Net, marks: Mapping[str, VectorLocation | None], now: Vectors
) -> dict[str, VectorLocation | None]:
    """The vectors that files which stay get back."""
    changed = (*net.removed.values(), *net.added.values())
    names = {entry.file.file_name for entry in changed}
    made = {key.file_name for key in net.made}
    return {
        name: vector
        for name, vector in marks.items()
        if name not in names | made and _changed(now.get(name), vector)
    }


def _steps(
    name: TableName, table: PinnedTable, history: Sequence[PastCommit], first: PastCommit
) -> Iterator[_Step]:
    """The commits from the run's ``first`` one on, oldest first."""
    since = [each for each in history if each.snapshot_id >= first.snapshot_id][::-1]
    before = next((e.native for e in history if e.snapshot_id == first.snapshot_id - 1), None)
    is_lost = before is None and first.snapshot_id > 1 and first.kind != "APPEND"
    ids = [each.snapshot_id for each in since]
    if is_lost or ids != list(range(ids[0], ids[-1] + 1)):
        raise files_expired(name, f"snapshot {first.snapshot_id - 1}")
    known: dict[str | None, Vectors] = {None: {}}
    # An append changes no vector.
    last = _vectors(table, first.native if before is None else before, known)
    if first.snapshot_id == 1:
        last = {}
    for number, commit in enumerate(since):
        entries = manifest_files.changed_entries(table.table, commit.native)
        after = _vectors(table, commit.native, known)
        yield _Step(number, commit, entries, last, after)
        last = after


def _vectors(table: PinnedTable, snapshot: Any, known: dict[str | None, Vectors]) -> Vectors:
    manifest = snapshot.index_manifest
    if manifest not in known:
        files = replace(table, snapshot=snapshot).files
        known[manifest] = files.vectors
    return known[manifest]


def _by_key(entries: Sequence[Any]) -> dict[Any, Any]:
    return {manifest_files.file_key(each): each for each in entries}


def _extent(vectors: Vectors, name: str) -> tuple[int, int] | None:
    found = vectors.get(name)
    return None if found is None else (found.length, found.cardinality)


def _changed(now: VectorLocation | None, before: VectorLocation | None) -> bool:
    one, other = ((each.length, each.cardinality) if each else None for each in (now, before))
    return one != other


def _refuse_touched(net: Net, marked: Mapping[str, int], others: Sequence[_Step]) -> None:
    """Refuse if a commit of others has built on what the run changed.

    Raises:
        InTheWayError: naming the commit and a file.
    """
    added = {entry.file.file_name: net.touched[key] for key, entry in net.added.items()}
    for step in others:
        for each in step.removed:
            key, file = manifest_files.file_key(each), each.file.file_name
            if key in net.added and step.number > net.touched[key]:
                what = "has removed or rewritten a file of the run"
                raise InTheWayError(step.commit, what, file)
            if step.number > marked.get(file, step.number):
                what = "has removed or rewritten a file of which the run marked rows"
                raise InTheWayError(step.commit, what, file)
        for file in sorted(step.remarked):
            if step.number > min(marked.get(file, step.number), added.get(file, step.number)):
                raise InTheWayError(step.commit, "has marked rows of a file", file)


def _refuse_overlaps(net: Net, others: Sequence[_Step]) -> None:
    """Refuse if others have written records, or merged some, within the keys of a changed file.

    Their rows may be made of the run's, and a merge may have dropped what the rows that come back
    would need: deletions of their keys, or the order of equal ones.
    """
    touched = [
        (bucket_key_of(entry), key_range(entry), net.touched[key])
        for key, entry in (*net.added.items(), *net.removed.items())
    ]
    for step in others:
        for other_entry in step.entries:
            place, own = bucket_key_of(other_entry), key_range(other_entry)
            for where, keys, number in touched:
                if step.number > number and where == place and keys.overlaps(own):
                    what = "has written or merged keys that the run wrote"
                    raise InTheWayError(step.commit, what, other_entry.file.file_name)


def _path(table: PinnedTable, entry: Any) -> str:
    external = entry.file.external_path
    if external is not None:
        return path_beside(table.path, external)
    return f"{table.files.bucket_directory(bucket_key_of(entry))}/{entry.file.file_name}"


def vector_files(table: PinnedTable, place: BucketKey) -> list[IndexFile]:
    """The files with deletion vectors of a bucket."""
    return [
        index_file
        for index_file in table.files.index_files
        if index_file.kind == index_manifest.DELETION_VECTORS
        and bucket_key_of(index_file.entry) == place
    ]
