"""What an undo changes in a table, and what of others is in the way. Driver only.

The net change of the run's snapshots is turned round, file by file. Files that come back are copies
under other names: an expiry of Iceberg's Java (``IncrementalFileCleanup``) removes each file that
an expired snapshot removed, also one that a later snapshot has added again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.connectors.iceberg.table.commits import OtherCommit, commit_of, summary_of
from spark_jobs.connectors.iceberg.table.live_files import (
    PartitionKey,
    entries_of,
    listed_manifests,
    live_files,
    may_apply,
    partition_key,
    referenced_file,
)
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    DELETES,
    EQUALITY_DELETES,
    FileKey,
    ManifestEntry,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.iceberg.table.refusals import refuse_spec
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

Net = NetChange[FileKey, ManifestEntry]


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """A data file that comes back, and the position deletes that were in force for it."""

    entry: ManifestEntry
    deletes: tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The change that takes back ``commits`` (newest first) of the run from ``table``.

    ``gone`` are the files of data and deletes that the run added. ``back`` are data files that it
    removed, ``marks`` deletes of files that stay.
    """

    table: PinnedTable
    commits: Sequence[PastCommit]
    gone: Mapping[FileKey, ManifestEntry]
    back: Sequence[RestoredFile]
    marks: Sequence[ManifestEntry]

    @property
    def is_empty(self) -> bool:
        """Whether the run changed nothing, in all."""
        return not (self.gone or self.back or self.marks)


def history_of(table: PinnedTable) -> list[PastCommit]:
    """The snapshots of the branch that have not expired, newest first."""
    return [
        PastCommit(
            int(snapshot.snapshot_id),
            int(snapshot.timestamp_ms),
            summary_of(snapshot),
            snapshot,
            kind=summary_of(snapshot).get("operation", "unknown"),
            user=summary_of(snapshot).get("engine-name", ""),
        )
        for snapshot in ancestors(table)
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
        return UndoPlan(table, (), {}, (), ())
    planner = _Planner(name, table, history, commits)
    return planned_undo(name, history, commits, planner.plan)


@dataclass(slots=True)
class _Planner:
    """Plans with the changes of the snapshots that it is told to take back."""

    name: TableName
    table: PinnedTable
    history: Sequence[PastCommit]
    commits: Sequence[PastCommit]
    known: dict[int, OtherCommit] = field(default_factory=dict)

    def plan(self, own: Collection[int]) -> UndoPlan:
        """The plan that takes back the snapshots of these ids; raises InTheWayError."""
        name, table = self.name, self.table
        oldest = max(n for n, each in enumerate(self.history) if each.snapshot_id in own)
        since = self.history[: oldest + 1][::-1]
        net, others = Net(), []
        for number, commit in enumerate(since):
            change = self._change(commit)
            if commit.snapshot_id in own:
                net.take(number, _by_key(change.added), _by_key(change.removed))
            else:
                others.append((number, commit, change))
        _refuse_kinds(name, table, net)
        _refuse_touched(table, net, others)
        with reading_metadata(table.place):
            back = _restored(name, table, net, since)
        for each in back:
            refuse_spec(name, table, each.entry.spec_id)
        marks = _marks(net)
        _refuse_old_deletes(name, table, [*marks, *(e for each in back for e in each.deletes)])
        return UndoPlan(table, self.commits, net.added, back, marks)

    def _change(self, commit: PastCommit) -> OtherCommit:
        if commit.snapshot_id not in self.known:
            with reading_metadata(self.table.place):
                self.known[commit.snapshot_id] = commit_of(self.table, commit.native)
        return self.known[commit.snapshot_id]


def _by_key(entries: Sequence[ManifestEntry]) -> dict[FileKey, ManifestEntry]:
    return {each.key: each for each in entries}


def _refuse_kinds(name: TableName, table: PinnedTable, net: Net) -> None:
    """Refuse what cannot be told file by file."""
    for entry in (*net.added.values(), *net.removed.values()):
        if entry.content == EQUALITY_DELETES:
            raise unsupported(name, f"it changed files of deletes by value ({entry.path})")
        if entry.content != DATA and referenced_file(entry) is None:
            raise unsupported(name, f"it changed deletes of several files in one ({entry.path})")
    lost = [each for each in net.removed.values() if each.content == DATA]
    if table.has_vectors and any(each.first_row_id is None for each in lost):
        raise unsupported(name, "files that it removed tell no ids of rows (format version 2)")


def _refuse_touched(
    table: PinnedTable, net: Net, others: Sequence[tuple[int, PastCommit, OtherCommit]]
) -> None:
    """Refuse if a commit of others has built on what the run changed.

    Raises:
        InTheWayError: naming the commit and a file.
    """
    added = {key: each for key, each in net.added.items() if each.content == DATA}
    lost = {key: each for key, each in net.removed.items() if each.content == DATA}
    marked = {
        str(referenced_file(entry)): net.touched[key]
        for key, entry in (*net.added.items(), *net.removed.items())
        if entry.content != DATA
    }
    places: dict[PartitionKey, list[int]] = defaultdict(list)
    for key, entry in (*net.added.items(), *net.removed.items()):
        if entry.content != DATA:
            places[partition_key(entry.spec_id, entry.partition)].append(net.touched[key])
    for number, commit, change in others:
        for entry in change.removed:
            if entry.key in net.added and number > net.touched[entry.key]:
                what = "has removed or rewritten a file of the run"
                raise InTheWayError(commit, what, entry.path)
            if entry.content == DATA and number > marked.get(entry.path, number):
                what = "has removed or rewritten a file of which the run marked rows"
                raise InTheWayError(commit, what, entry.path)
        for delete_file in change.position_deletes:
            path = referenced_file(delete_file)
            numbers = places.get(partition_key(delete_file.spec_id, delete_file.partition), ())
            since = min(numbers, default=number) if path is None else marked.get(path, number)
            if number > since:
                what = "has marked rows of a file of which the run marked rows"
                raise InTheWayError(commit, what, path or delete_file.path)
        _refuse_deletes(
            table,
            commit,
            change,
            [each for key, each in added.items() if number > net.touched[key]],
            [each for key, each in lost.items() if number > net.touched[key]],
        )


def _refuse_deletes(
    table: PinnedTable,
    commit: PastCommit,
    change: OtherCommit,
    added: Iterable[ManifestEntry],
    lost: Iterable[ManifestEntry],
) -> None:
    """Refuse if a commit has marked rows of files that the run ``added``.

    Files that it ``lost`` would come back below deletes by value, which are as old as the commit.
    """
    by_value = change.equality_deletes
    gone = [each for each in change.removed if each.content == EQUALITY_DELETES]
    for files, deletes in ((added, change.delete_files), (lost, [*by_value, *gone])):
        for file in files:
            if any(may_apply(delete, file, table.unpartitioned) for delete in deletes):
                what = "has deleted, or may have deleted, rows of a file"
                raise InTheWayError(commit, what, file.path)


def _restored(
    name: TableName, table: PinnedTable, net: Net, since: Sequence[PastCommit]
) -> list[RestoredFile]:
    """The data files that come back, each with its deletes before the run touched it.

    Those are in force at the parent of the snapshot that removed the file, without the run's own,
    and with those that the run had removed before.
    """
    restored = []
    known = {int(each.snapshot_id): each for each in table.metadata.snapshots}
    by_remover: dict[int, list[ManifestEntry]] = {}
    for key, entry in net.removed.items():
        if entry.content == DATA:
            by_remover.setdefault(net.touched[key], []).append(entry)
    own = [each for each in net.removed.values() if each.content != DATA]
    for number, entries in sorted(by_remover.items()):
        parent = known.get(since[number].native.parent_snapshot_id)
        if parent is None:
            raise files_expired(name, entries[0].path)
        listed = listed_manifests(table.storage, parent.manifest_list)
        deletes = entries_of(table.storage, [e for e in listed if e.content == DELETES])
        files = live_files(table.storage, [*entries, *deletes], table.unpartitioned)
        for file in files:
            in_force = {e.key: e for e in file.deletes if e.key not in net.made}
            in_force |= {e.key: e for e in own if referenced_file(e) == file.entry.path}
            if len(in_force) > 1 and any(e.is_vector for e in in_force.values()):
                in_force = {key: e for key, e in in_force.items() if e.is_vector}
            restored.append(RestoredFile(file.entry, tuple(in_force.values())))
    return restored


def _marks(net: Net) -> list[ManifestEntry]:
    """The deletes that come back of files that the run did not remove."""
    lost = {each.path for each in net.removed.values() if each.content == DATA}
    return [
        entry
        for entry in net.removed.values()
        if entry.content != DATA and referenced_file(entry) not in lost
    ]


def _refuse_old_deletes(
    name: TableName, table: PinnedTable, deletes: Sequence[ManifestEntry]
) -> None:
    for file in deletes:
        if table.has_vectors and not file.is_vector:
            raise unsupported(
                name, f"deletes that must come back are those of format version 2 ({file.path})"
            )


def first_of(history: Sequence[PastCommit]) -> tuple[PastCommit | None, bool]:
    """The oldest snapshot that is known, and whether there was none before."""
    if not history:
        return None, True
    oldest: Any = history[-1].native
    return history[-1], oldest.parent_snapshot_id is None
