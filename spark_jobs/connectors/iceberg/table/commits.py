"""What single snapshots changed. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.iceberg.table.live_files import listed_manifests
from spark_jobs.connectors.iceberg.table.manifests import (
    ADDED,
    DATA,
    DELETED,
    EQUALITY_DELETES,
    ManifestEntry,
    read_manifest,
)
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.properties import OPERATION_ID


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
    summary: dict[str, str] = snapshot.summary.model_dump()
    operation = summary.get("operation")
    return {**summary, "operation": str(getattr(operation, "value", operation))}


def commit_of(table: PinnedTable, snapshot: Any) -> OtherCommit:
    """What a snapshot changed; raises as ``read_manifest``, and what the storage raises."""
    own = [
        manifest
        for manifest in listed_manifests(table.storage, snapshot.manifest_list)
        if manifest.record.get("added_snapshot_id") == snapshot.snapshot_id
    ]
    entries = [
        entry
        for each in own
        for entry in read_manifest(table.storage.read(each.path), each)
        if entry.snapshot_id in (None, snapshot.snapshot_id)
    ]
    added = [each for each in entries if each.status == ADDED]
    return OtherCommit(snapshot, added, [each for each in entries if each.status == DELETED])
