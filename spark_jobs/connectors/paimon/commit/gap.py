"""The snapshots that others committed after the base of a write. Driver only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.vectors import VectorRange
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files, stored_snapshots
from spark_jobs.connectors.paimon.library.index_manifest import IndexFile
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.errors import CommitError, ErrorCode


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
