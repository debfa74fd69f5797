"""The snapshots that others committed after the base of a write. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.iceberg.commit.base_notes import base_of
from spark_jobs.connectors.iceberg.table.live_files import listed_manifests
from spark_jobs.connectors.iceberg.table.manifests import (
    ADDED,
    DATA,
    DELETED,
    EQUALITY_DELETES,
    ManifestEntry,
    read_manifest,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, ancestors
from spark_jobs.connectors.shared.commit.refusals import READ_AGAIN
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.formats.iceberg.holds import Base


@dataclass(frozen=True, slots=True)
class OtherCommit:
    """A snapshot after the base: the entries of files that it added and removed."""

    snapshot: Any
    added: Sequence[ManifestEntry]
    removed: Sequence[ManifestEntry]

    @property
    def operation_id(self) -> str | None:
        """The operation of this project that made it."""
        found: str | None = summary_of(self.snapshot).get(OPERATION_ID)
        return found

    @property
    def keeps_rows(self) -> bool:
        """Whether it is a compaction: the same rows in other files."""
        return summary_of(self.snapshot).get("operation") == "replace"

    @property
    def delete_files(self) -> Sequence[ManifestEntry]:
        """The delete files that it added."""
        return [*self.position_deletes, *self.equality_deletes]

    @property
    def position_deletes(self) -> Sequence[ManifestEntry]:
        """The files of deletes by position, or deletion vectors, that it added."""
        return [each for each in self.added if each.content not in (DATA, EQUALITY_DELETES)]

    @property
    def equality_deletes(self) -> Sequence[ManifestEntry]:
        """The files of deletes by value that it added."""
        return [each for each in self.added if each.content == EQUALITY_DELETES]

    @property
    def data_files(self) -> Sequence[ManifestEntry]:
        """The data files that it added or removed."""
        return [each for each in (*self.added, *self.removed) if each.content == DATA]

    def __str__(self) -> str:
        kind = summary_of(self.snapshot).get("operation", "unknown")
        return f"Snapshot {self.snapshot.snapshot_id} ({kind})"


def summary_of(snapshot: Any) -> dict[str, str]:
    """The summary of pyiceberg's snapshot, with its operation; empty without one."""
    if snapshot is None or snapshot.summary is None:
        return {}
    found: dict[str, str] = snapshot.summary.model_dump()
    operation = found.get("operation")
    return {**found, "operation": str(getattr(operation, "value", operation))}


def snapshots_since(latest: PinnedTable, base: Base) -> list[Any] | None:
    """The snapshots after ``base`` up to the head of ``latest``, oldest first.

    None if they cannot be known: one has expired, or the table was rolled back.
    """
    found: list[Any] = []
    for each in ancestors(latest):
        if each.snapshot_id == base.snapshot_id:
            return found[::-1]
        found.append(each)
    if not found:
        return [] if base.snapshot_id is None else None
    parent = found[-1].parent_snapshot_id
    is_whole = parent == base.snapshot_id and (parent is not None or _is_first(latest, found, base))
    return found[::-1] if is_whole else None


def _is_first(latest: PinnedTable, found: Sequence[Any], base: Base) -> bool:
    """Whether the oldest found snapshot has had no parent; pyiceberg's expiry cuts parents off.

    Then every number since the base is that of a snapshot. Version 1 has no numbers.
    """
    known = {each.sequence_number for each in latest.metadata.snapshots}
    numbers = range(base.sequence_number + 1, found[-1].sequence_number or 0)
    return all(number in known for number in numbers)


class Gap:
    """The commits after the base of a write that have been read so far."""

    def __init__(self, base: PinnedTable) -> None:
        self._base = base_of(base)
        self.commits: list[OtherCommit] = []

    def read_up_to(self, latest: PinnedTable) -> None:
        """Read the snapshots of ``latest`` that have not been read.

        Raises:
            CommitError: COMMIT_CONFLICT: one has expired, or the table was rolled back.
        """
        found = snapshots_since(latest, self._base)
        known = [each.snapshot.snapshot_id for each in self.commits]
        if found is None or [each.snapshot_id for each in found[: len(known)]] != known:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"The snapshots of {latest.place} since {self._base.snapshot_id}, on which the "
                "statement builds, have expired or were rolled back while it ran.",
                READ_AGAIN,
            )
        for snapshot in found[len(known) :]:
            with reading_metadata(latest.place):
                self.commits.append(commit_of(latest, snapshot))


def commit_of(table: PinnedTable, snapshot: Any) -> OtherCommit:
    """What a snapshot changed; raises as ``read_manifest``, and what the storage raises."""
    own = [
        each
        for each in listed_manifests(table.storage, snapshot.manifest_list)
        if each.record.get("added_snapshot_id") == snapshot.snapshot_id
    ]
    entries = [
        entry
        for each in own
        for entry in read_manifest(table.storage.read(each.path), each)
        if entry.snapshot_id in (None, snapshot.snapshot_id)
    ]
    added = [each for each in entries if each.status == ADDED]
    return OtherCommit(snapshot, added, [each for each in entries if each.status == DELETED])
