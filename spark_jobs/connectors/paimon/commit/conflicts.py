"""Whether what others committed meanwhile is in the way of a commit (rule 12). Driver only.

Two questions are asked of every snapshot after the base. Is all that the write removes, rewrites or
marks still there as it was? Otherwise its files fit the table no more, under either isolation. And
would the statement have come out the same on the newer table? It would when nothing changed in the
read set; compactions are left out here, because they change files, not rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.commit.new_snapshot import Change
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.sequence_numbers import bucket_key_of
from spark_jobs.connectors.paimon.format.vectors import VectorRange
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files, stored_snapshots
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.read.planning import described_files
from spark_jobs.connectors.paimon.table.table_handle import PaimonTable
from spark_jobs.contract.request import Isolation
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.writes import ReadSet

_RETRY: Final = "Run the statement again: it will read the table's new snapshot."
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class OtherCommit:
    """A snapshot that somebody else made after the base.

    ``remarked`` are the names of data files whose deletion vector changed; ``reindexed`` are the
    entries of the index files that came or went.
    """

    snapshot: Any
    entries: Sequence[Any]
    remarked: frozenset[str]
    reindexed: Sequence[Any]

    @property
    def keeps_rows(self) -> bool:
        """Whether it is a compaction: the same rows in other files.

        Older versions of Paimon call it one, too, when rows are deleted by vectors alone.
        """
        return bool(self.snapshot.commit_kind == "COMPACT") and self.remarked <= self._removed

    @property
    def unsettled(self) -> frozenset[str]:
        """The names of data files that are not what they were before."""
        return self.remarked | self._removed

    @property
    def _removed(self) -> frozenset[str]:
        return frozenset(e.file.file_name for e in self.entries if e.kind != ADD)

    def __str__(self) -> str:
        kind, user = self.snapshot.commit_kind, self.snapshot.commit_user
        return f"Snapshot {self.snapshot.id} ({kind} by {user})"


class Gap:
    """What was committed after the base of a write, as far as it has been read.

    ``index_files`` are those of the last snapshot that was read.
    """

    def __init__(self, base: PaimonTable) -> None:
        self._table = base.table
        self._last = base.snapshot
        self.index_files: Sequence[IndexFile] = base.index_files
        self.commits: list[OtherCommit] = []

    def read_up_to(self, latest: Any | None) -> None:
        """Read the snapshots between the last one that was read and ``latest``.

        Raises:
            CommitError: COMMIT_CONFLICT when one has expired, or the table was rolled back.
        """
        last = self._last
        if last is not None and not _is_same(last, self._found(last.id, latest)):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Snapshot {last.id}, on which the statement builds, has expired or was rolled "
                "back while it ran.",
                _RETRY,
            )
        for snapshot_id in range(last.id + 1 if last else 1, latest.id + 1 if latest else 1):
            snapshot = self._found(snapshot_id, latest)
            if snapshot is None:
                raise CommitError(
                    ErrorCode.COMMIT_CONFLICT,
                    f"Snapshot {snapshot_id}, committed while the statement ran, has expired "
                    "already: whether it is in conflict can not be known.",
                    _RETRY,
                )
            self._take(snapshot)

    def _found(self, snapshot_id: int, latest: Any | None) -> Any | None:
        if latest is not None and snapshot_id == latest.id:
            return latest
        return stored_snapshots.find_snapshot(self._table, snapshot_id)

    def _take(self, snapshot: Any) -> None:
        index_files = self.index_files
        if snapshot.index_manifest != (self._last.index_manifest if self._last else None):
            index_files = index_manifest.index_files(self._table, snapshot)
        remarked = _differing_vectors(self.index_files, index_files)
        entries = manifest_files.changed_entries(self._table, snapshot)
        reindexed = _differing_entries(self.index_files, index_files)
        self.commits.append(OtherCommit(snapshot, entries, remarked, reindexed))
        self._last, self.index_files = snapshot, index_files

    @property
    def added(self) -> list[Any]:
        """Entries of all files that were added."""
        return [e for each in self.commits for e in each.entries if e.kind == ADD]


def _is_same(snapshot: Any, found: Any | None) -> bool:
    lists = (snapshot.delta_manifest_list, snapshot.base_manifest_list)
    return found is not None and lists == (found.delta_manifest_list, found.base_manifest_list)


def _differing_vectors(before: Sequence[IndexFile], after: Sequence[IndexFile]) -> frozenset[str]:
    """The data files whose vectors mark other rows.

    A vector that was copied elsewhere is the same: vectors only grow while a file lives.
    """
    if before is after:
        return frozenset()
    old, new = (
        {name: each for file in files for name, each in file.vectors.items()}
        for files in (before, after)
    )
    return frozenset(
        name for name in old.keys() | new.keys() if _extent(old, name) != _extent(new, name)
    )


def _differing_entries(before: Sequence[IndexFile], after: Sequence[IndexFile]) -> list[Any]:
    old, new = (
        {index_manifest.index_name(file.entry): file.entry for file in files}
        for files in (before, after)
    )
    return [(old | new)[name] for name in sorted(old.keys() ^ new.keys())]


def _extent(vectors: Mapping[str, VectorRange], name: str) -> tuple[int, int | None] | None:
    found = vectors.get(name)
    return None if found is None else (found.length, found.cardinality)


def refuse_conflicts(
    table: PaimonTable, gap: Gap, change: Change, isolation: Isolation, read_set: ReadSet
) -> None:
    """Refuse to publish ``change``, made for the snapshot ``table`` is pinned at, behind ``gap``.

    Raises:
        CommitError: COMMIT_CONFLICT, with the snapshot that is in the way, and its partitions.
    """
    _refuse_lost_files(table, gap, change)
    if isolation == "snapshot":
        return
    known = {entry.file.file_name: entry for _, entry in table.located_entries}
    known |= {entry.file.file_name: entry for entry in gap.added}
    for commit in gap.commits:
        if commit.keeps_rows:
            continue
        entries = [*commit.entries, *(known[n] for n in commit.remarked if n in known)]
        touched = [entries[file.ordinal] for file in read_set(described_files(table, entries))]
        if touched:
            raise _conflict(table, commit, touched, "what the statement read")


def _refuse_lost_files(table: PaimonTable, gap: Gap, change: Change) -> None:
    """Everything that the change removes, rewrites or marks must be there as it was."""
    needed = {e.file.file_name: e for e in change.entries if e.kind != ADD}
    by_name = {entry.file.file_name: entry for _, entry in table.located_entries}
    marked = (name for index in change.index_adds for name in index_manifest.marked_files(index))
    needed |= {name: by_name[name] for name in marked if name in by_name}
    for commit in gap.commits:
        lost = [needed[name] for name in commit.unsettled if name in needed]
        if lost:
            raise _conflict(table, commit, lost, "files that the statement changes")
    now = _indexes_of(table, change, gap.index_files)
    differing = now ^ _indexes_of(table, change, table.index_files)
    for commit in gap.commits:
        moved = [e for e in commit.reindexed if index_manifest.index_name(e) in differing]
        if moved:
            raise _conflict(table, commit, moved, "deletion vectors that the statement rewrites")


def _indexes_of(
    table: PaimonTable, change: Change, index_files: Sequence[IndexFile]
) -> frozenset[str]:
    """The index files that the change takes away or, in a fixed bucket, stands in for."""
    deleted = {index_manifest.index_name(each) for each in change.index_deletes}
    places = {bucket_key_of(each) for each in (*change.index_adds, *change.index_deletes)}
    return frozenset(
        index_manifest.index_name(file.entry)
        for file in index_files
        if index_manifest.index_name(file.entry) in deleted
        or (table.buckets is not None and bucket_key_of(file.entry) in places)
    )


def _conflict(
    table: PaimonTable, commit: OtherCommit, entries: Sequence[Any], what: str
) -> CommitError:
    keys = table.schema.partition_keys
    partitions = sorted({str(entry.partition.to_dict()) for entry in entries})
    shown = ", ".join(partitions[:_SHOWN]) + (", …" if len(partitions) > _SHOWN else "")
    where = f" in partitions {shown}" if keys else ""
    return CommitError(
        ErrorCode.COMMIT_CONFLICT, f"{commit} changed {what}{where} while it ran.", _RETRY
    )
