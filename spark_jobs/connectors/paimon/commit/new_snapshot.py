"""The files of a new snapshot, and the ids of its new rows. Driver only.

Modelled on Paimon's ``FileStoreCommitImpl.tryCommitOnce`` and ``RowTrackingCommitUtils``. Both
depend on the previous snapshot, so the files of a lost attempt are removed, and each attempt gives
ids anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from spark_jobs.connectors.paimon.commit.manifest_merging import Thresholds, merge_manifests
from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.format.row_tracking import stores_ids
from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.connectors.paimon.library.data_files import APPENDED
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.errors import CatalogError, ErrorCode


@dataclass(frozen=True, slots=True)
class Change:
    """What a write changes in a table, as entries of manifests and of the index manifest.

    ``changelog`` has the entries of changelog files. ``compacts``: the rows stay the same.
    """

    entries: Sequence[Any]
    index_adds: Sequence[Any]
    index_deletes: Sequence[Any]
    overwrites: bool
    changelog: Sequence[Any] = ()
    compacts: bool = False

    @property
    def kind(self) -> str:
        """The commit kind of the snapshot, decided as in Paimon's own commit."""
        if self.compacts:
            return "COMPACT"
        removes = any(entry.kind != ADD for entry in self.entries)
        changes_index = bool(self.index_adds or self.index_deletes)
        return "OVERWRITE" if self.overwrites or removes or changes_index else "APPEND"


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit's user and identifier, and the properties that the snapshot records."""

    user: str
    identifier: int
    properties: Mapping[str, str]


@dataclass(slots=True)
class NewSnapshot:
    """A snapshot that is not yet published.

    ``entries`` are its manifest entries of added and removed files. ``names`` are those of the
    metadata files that only it refers to.
    """

    snapshot: Any
    entries: Sequence[Any]
    names: list[str] = field(default_factory=list)


class SnapshotWriter:
    """Writes the files of each attempt to publish a change."""

    def __init__(self, table: PinnedTable, commit: Commit) -> None:
        self._table = table.table
        self._tracks_rows = table.tracks_rows
        self._thresholds = Thresholds.of(table.options)
        self._commit = commit

    def write(self, change: Change, previous: Any | None) -> NewSnapshot:
        """Write everything but the snapshot file for ``change`` on top of ``previous``.

        Raises:
            RuntimeError, OSError: the storage failed; the files written so far are removed.
        """
        names: list[str] = []
        try:
            return self._written(change, previous, names)
        except BaseException:
            manifest_files.remove_manifests(self._table, names)
            raise

    def discard(self, lost: NewSnapshot) -> None:
        """Remove the files of a snapshot that certainly was not, and will not be, published."""
        manifest_files.remove_manifests(self._table, lost.names)

    def _written(self, change: Change, previous: Any | None, names: list[str]) -> NewSnapshot:
        token = uuid.uuid4()
        size = self._thresholds.target_size
        added = self._numbered(change.entries, previous)
        delta = manifest_files.write_manifests(
            self._table, added.entries, size, f"manifest-{token}"
        )
        names += [each.file_name for each in delta]
        listed = manifest_files.listed_manifests(self._table, previous)
        merged = merge_manifests(self._table, listed, self._thresholds, f"manifest-{token}-merged")
        names += [each.file_name for each in merged.written]
        parts = {"base": merged.manifests, "delta": delta}
        if change.changelog:
            parts["changelog"] = manifest_files.write_manifests(
                self._table, change.changelog, size, f"manifest-{token}-changelog"
            )
            names += [each.file_name for each in parts["changelog"]]
        lists = {}
        for which, manifests in parts.items():
            name = f"manifest-list-{token}-{which}"
            names.append(name)
            lists[which] = name, manifest_files.write_list(self._table, name, manifests)
        before = previous.index_manifest if previous else None
        index_manifest = manifest_files.write_index_manifest(
            self._table, before, change.index_adds, change.index_deletes
        )
        if index_manifest is not None and index_manifest != before:
            names.append(index_manifest)
        snapshot = manifest_files.new_snapshot(
            self._table,
            previous,
            lists,
            index_manifest,
            added.entries,
            change.changelog,
            change.kind,
            self._commit.user,
            self._commit.identifier,
            self._commit.properties,
            added.next_row_id,
        )
        return NewSnapshot(snapshot, added.entries, names)

    def _numbered(self, entries: Sequence[Any], previous: Any | None) -> _Numbered:
        if not self._tracks_rows:
            return _Numbered(entries, previous.next_row_id if previous else None)
        snapshot_id = previous.id + 1 if previous else 1
        return numbered(entries, snapshot_id, _first_new_id(previous))


class _Numbered(NamedTuple):
    """Manifest entries, and the id of the next new row; None if the table never tracked rows."""

    entries: Sequence[Any]
    next_row_id: int | None


def numbered(entries: Sequence[Any], snapshot_id: int, next_row_id: int) -> _Numbered:
    """``entries`` as snapshot ``snapshot_id`` adds them; new rows get ids from ``next_row_id`` on.

    A sequence number of 0 becomes the snapshot's.
    """
    numbered_entries = []
    for entry in entries:
        if entry.kind != ADD:
            numbered_entries.append(entry)
            continue
        file = entry.file
        low, high = file.min_sequence_number, file.max_sequence_number
        changes: dict[str, Any] = {
            "min_sequence_number": low or snapshot_id,
            "max_sequence_number": high if low and high else snapshot_id,
        }
        if _has_new_rows(file):
            changes["first_row_id"] = next_row_id
            next_row_id += file.row_count
        numbered_entries.append(replace(entry, file=replace(file, **changes)))
    return _Numbered(numbered_entries, next_row_id)


def _first_new_id(previous: Any | None) -> int:
    """The id of the first row that is new after a snapshot; None: there is no snapshot.

    Raises:
        CatalogError: METADATA_UNREADABLE: the snapshot has rows, and does not tell.
    """
    if previous is None:
        return 0
    if previous.next_row_id is None and previous.total_record_count:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"Snapshot {previous.id} of a table that tracks rows has no nextRowId: new rows would "
            "get the ids of others.",
            "Roll the table back to the snapshot before it, and find out which writer made it.",
        )
    return previous.next_row_id or 0


def _has_new_rows(file: Any) -> bool:
    is_appended = file.file_source == APPENDED
    return is_appended and file.first_row_id is None and not stores_ids(file.write_cols)
