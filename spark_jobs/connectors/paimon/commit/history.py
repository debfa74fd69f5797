"""The history of a table: which snapshot an operation committed, and what others did.

Driver only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.commit.guard import guard_of
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.vectors import VectorRange
from spark_jobs.connectors.paimon.library import (
    index_manifest,
    manifest_files,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN, expired
from spark_jobs.contract.undone import Undone
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.marks import HistoryEntry, TableHistory
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.storage.files import in_parallel

# The commit identifier of all snapshots of this project; the commit user is the operation id.
COMMIT_IDENTIFIER: Final = 1
# The number of snapshots that are read at a time.
_READ_AT_ONCE: Final = 64
_FIRST_SNAPSHOT = 1
_FIRST_SCHEMA = 0


def is_made_by(snapshot: Any, operation_id: str) -> bool:
    """Whether the operation committed the snapshot."""
    identity = (snapshot.commit_user, snapshot.commit_identifier)
    return bool(identity == (operation_id, COMMIT_IDENTIFIER))


def find_commit(
    filesystem: pafs.FileSystem, table: TableHandle, operation_id: str
) -> CommittedSnapshot | None:
    """The snapshot that the operation committed, searched for from the latest one backwards.

    One that was taken back since is none.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: snapshots since the guarded base have expired.
    """
    target = pinned_table(table)
    ids = stored_snapshots.snapshot_ids(target.table)
    base = guard_of(filesystem, target, operation_id).base()
    # No try of the operation writes anything before it sets its guard.
    since = [i for i in ids if base is None or i >= base]
    for snapshot, counts in newest_first(target.table, since):
        if counts and is_made_by(snapshot, operation_id):
            return _committed(snapshot)
    if base is not None and ids:
        _require_all_since(base, ids, table, operation_id)
    return None


def recall(table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
    """The snapshot of this id, if the table has it.

    None: it was rolled back, or taken back by a later commit, or never was.

    Raises:
        CommitError: COMMIT_HISTORY_EXPIRED: it may have expired.
    """
    native = pinned_table(table).table
    ids = stored_snapshots.snapshot_ids(native)
    if snapshot_id in ids:
        for snapshot, counts in newest_first(native, [i for i in ids if i >= snapshot_id]):
            if snapshot.id == snapshot_id:
                return _committed(snapshot) if counts else None
    if ids and snapshot_id < ids[0]:
        raise expired(snapshot_id, table.name)
    return None


def newest_first(table: Any, ids: Sequence[int]) -> Iterator[tuple[Any, bool]]:
    """The snapshots of ascending ``ids``, from the last one on, and whether they count."""
    undone, find = Undone(), partial(stored_snapshots.find_snapshot, table)
    ordered = ids[::-1]
    for start in range(0, len(ordered), _READ_AT_ONCE):
        for snapshot in in_parallel(find, ordered[start : start + _READ_AT_ONCE]):
            if snapshot is not None:
                yield snapshot, undone.counts(snapshot.properties or {})


def _committed(snapshot: Any) -> CommittedSnapshot:
    return CommittedSnapshot(snapshot.id, dict(snapshot.properties or {}))


def _require_all_since(base: int, ids: list[int], table: TableHandle, operation_id: str) -> None:
    """Check that no snapshot from the base on is gone: it might have been the operation's."""
    retained = set(ids)
    missing = next((i for i in range(base, ids[-1]) if i not in retained), None)
    if missing is not None:
        raise CommitError(
            ErrorCode.COMMIT_HISTORY_EXPIRED,
            f"Snapshot {missing} of {table.name} has expired, so whether operation "
            f"{operation_id} was committed in it cannot be known.",
            "Look at the table's rows; clear the task to run the statement once more.",
        )


def history(table: TableHandle) -> TableHistory:
    """The history of a table, from its pinned snapshot backwards.

    Raises:
        OSError: the storage refused.
    """
    target = pinned_table(table)
    return TableHistory(_identity(target), _entries(target))


def _identity(target: PinnedTable) -> str:
    try:
        return str(table_schema.identity(target.table, _FIRST_SCHEMA))
    except FileNotFoundError:
        return ""


def _entries(target: PinnedTable) -> Iterator[HistoryEntry]:
    if target.snapshot is None:
        return
    expected = target.snapshot.id
    ids = [each for each in stored_snapshots.snapshot_ids(target.table) if each <= expected]
    for snapshot, counts in newest_first(target.table, ids):
        if snapshot.id != expected:
            return
        yield HistoryEntry(
            snapshot.id,
            snapshot.id,
            dict(snapshot.properties or {}),
            counts,
            snapshot.id == _FIRST_SNAPSHOT,
        )
        expected -= 1


@dataclass(frozen=True, slots=True)
class OtherCommit:
    """A snapshot that another writer committed after the base.

    ``remarked`` are the names of data files whose deletion vector changed. ``reindexed`` are the
    entries of index files that were added or removed.
    """

    snapshot: Any
    entries: Sequence[Any]
    remarked: frozenset[str]
    reindexed: Sequence[Any]

    @property
    def keeps_rows(self) -> bool:
        """Whether it is a compaction: the same rows in other files.

        Older versions of Paimon also use the kind COMPACT when only deletion vectors delete rows.
        """
        return bool(self.snapshot.commit_kind == "COMPACT") and self.remarked <= self._removed

    @property
    def unsettled(self) -> frozenset[str]:
        """The names of data files that were removed, or whose deletion vector changed."""
        return self.remarked | self._removed

    @property
    def _removed(self) -> frozenset[str]:
        return frozenset(e.file.file_name for e in self.entries if e.kind != ADD)

    def __str__(self) -> str:
        kind, user = self.snapshot.commit_kind, self.snapshot.commit_user
        return f"Snapshot {self.snapshot.id} ({kind} by {user})"


class Gap:
    """The commits after the base of a write that have been read so far.

    ``index_files`` are those of the last snapshot that was read.
    """

    def __init__(self, base: PinnedTable) -> None:
        self._table = base.table
        self._last = base.snapshot
        self.index_files: Sequence[IndexFile] = base.files.index_files
        self.commits: list[OtherCommit] = []

    def read_up_to(self, latest: Any | None) -> None:
        """Read the snapshots after the last one that was read, up to ``latest``.

        Raises:
            CommitError: COMMIT_CONFLICT: one has expired, or the table was rolled back.
        """
        last = self._last
        # A rollback may be under way: later ones are there still, or others of their ids.
        is_later = last is not None and (latest is None or latest.id < last.id)
        if last is not None and (is_later or not _is_same(last, self._found(last.id, latest))):
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"Snapshot {last.id}, on which the statement builds, has expired or was rolled "
                "back while it ran.",
                READ_AGAIN,
            )
        for snapshot_id in range(last.id + 1 if last else 1, latest.id + 1 if latest else 1):
            snapshot = self._found(snapshot_id, latest)
            if snapshot is None:
                raise CommitError(
                    ErrorCode.COMMIT_CONFLICT,
                    f"Snapshot {snapshot_id}, committed while the statement ran, has expired "
                    "already: whether it is in conflict cannot be known.",
                    READ_AGAIN,
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
        """The manifest entries of all files that were added."""
        return [e for each in self.commits for e in each.entries if e.kind == ADD]


def _is_same(snapshot: Any, found: Any | None) -> bool:
    lists = (snapshot.delta_manifest_list, snapshot.base_manifest_list)
    return found is not None and lists == (found.delta_manifest_list, found.base_manifest_list)


def _differing_vectors(before: Sequence[IndexFile], after: Sequence[IndexFile]) -> frozenset[str]:
    """The names of data files whose vectors mark different rows.

    A vector with the same length and cardinality is an unchanged copy: vectors only grow while
    their data file lives.
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
