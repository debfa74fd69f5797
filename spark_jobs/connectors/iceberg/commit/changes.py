"""What a write changes, from the fragments of its sinks. Driver only.

Vectors that share a Puffin file with one that goes are stored anew: an expiry of Iceberg's Java
(``IncrementalFileCleanup``, 1.12) removes each file of which an expired snapshot removed a vector,
also if the table needs others of it. Java writes such files.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_jobs.connectors.iceberg.commit.manifest_records import (
    NewDataFile,
    kept_order,
    new_data_file,
    new_delete_file,
)
from spark_jobs.connectors.iceberg.format.deletes import (
    DataFileDeletes,
    DeletedRows,
    stored_deletes,
)
from spark_jobs.connectors.iceberg.format.transforms import decoded
from spark_jobs.connectors.iceberg.read.scanned_files import delete_file
from spark_jobs.connectors.iceberg.table.live_files import (
    LiveFile,
    entries_of,
    listed_manifests,
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
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.file_layout import PartitionColumn
from spark_jobs.connectors.iceberg.write.table_layout import (
    data_location,
    folder_of_new_version,
    partition_columns,
    row_order,
)
from spark_jobs.datafiles.values import decode_value
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that a write adds, and those of its base that it removes.

    ``added`` are data files, ``deletes`` files of position deletes, or vectors, for rows of the
    data files ``marked``; ``removed`` may be both. ``overwrites``: it is an overwrite whatever it
    does; ``replaces``: the rows are the same. ``shared`` are the locations of files with vectors
    that are removed, and others that are not; None: that is not known.
    """

    added: Sequence[NewDataFile]
    deletes: Sequence[NewDataFile]
    removed: Mapping[FileKey, ManifestEntry]
    marked: Sequence[ManifestEntry]
    overwrites: bool = False
    replaces: bool = False
    shared: Collection[str] | None = None

    @property
    def touched(self) -> Sequence[ManifestEntry]:
        """The data files that must not have changed."""
        return [*(each for each in self.removed.values() if each.content == DATA), *self.marked]

    @property
    def operation(self) -> str:
        """What incremental readers are told: ``append``, ``delete``, ``overwrite``, ``replace``."""
        if self.replaces:
            return "replace"
        if self.overwrites:
            return "overwrite"
        if not self.removed and not self.deletes:
            return "append"
        return "overwrite" if self.added else "delete"

    def summary(self, before: Mapping[str, str]) -> dict[str, str]:
        """The counts of a snapshot's summary, as Iceberg's Java has them; ``before``: its parent's.

        Totals that the parent does not have stay unknown.
        """
        old = [each for each in self.removed.values() if each.content == DATA]
        old_deletes = [each for each in self.removed.values() if each.content != DATA]
        by_value = [each for each in old_deletes if each.content == EQUALITY_DELETES]
        by_position = [each for each in old_deletes if each.content != EQUALITY_DELETES]
        vectors, old_vectors = (
            sum(each.is_vector for each in files) for files in (self.deletes, by_position)
        )
        everything: list[NewDataFile | ManifestEntry] = [*self.added, *self.deletes]
        everything += self.removed.values()
        counts = {
            "added-data-files": len(self.added),
            "added-records": _rows(self.added),
            "added-delete-files": len(self.deletes),
            "added-position-delete-files": len(self.deletes) - vectors,
            "added-dvs": vectors,
            "added-position-deletes": _rows(self.deletes),
            "added-files-size": _size((*self.added, *self.deletes)),
            "deleted-data-files": len(old),
            "deleted-records": _rows(old),
            "removed-delete-files": len(old_deletes),
            "removed-position-delete-files": len(by_position) - old_vectors,
            "removed-dvs": old_vectors,
            "removed-position-deletes": _rows(by_position),
            "removed-equality-delete-files": len(by_value),
            "removed-equality-deletes": _rows(by_value),
            "removed-files-size": _size(tuple(self.removed.values())),
            "changed-partition-count": len(
                {partition_key(each.spec_id, each.partition) for each in everything}
            ),
        }
        totals = {
            "total-data-files": len(self.added) - len(old),
            "total-records": _rows(self.added) - _rows(old),
            "total-files-size": counts["added-files-size"] - counts["removed-files-size"],
            "total-delete-files": len(self.deletes) - len(old_deletes),
            "total-position-deletes": _rows(self.deletes) - _rows(by_position),
            "total-equality-deletes": -_rows(by_value),
        }
        summary = {name: str(count) for name, count in counts.items() if count}
        for name, change in totals.items():
            total = before.get(name, None if before else "0")
            if total is not None and total.isdecimal():
                summary[name] = str(max(int(total) + change, 0))
        return summary


def new_partition(columns: Sequence[PartitionColumn], values: Sequence[Any]) -> dict[int, Any]:
    """The partition of a new file with these fields, from the document of its fragment."""
    pairs = zip(columns, values, strict=True)
    return {each.field_id: decoded(each.kind, decode_value(value)) for each, value in pairs}


def _rows(files: Sequence[NewDataFile | ManifestEntry]) -> int:
    return sum(each.row_count for each in files)


def _size(files: Sequence[NewDataFile | ManifestEntry]) -> int:
    return sum(each.size for each in files)


def shared_files(
    files: Iterable[LiveFile], removed: Mapping[FileKey, ManifestEntry]
) -> frozenset[str]:
    """The locations of files with vectors that are ``removed``, and with others of ``files``."""
    paths = {each.path for each in removed.values() if each.is_vector}
    if not paths:
        return frozenset()
    kept = (each for file in files for each in file.deletes if each.key not in removed)
    return frozenset(each.path for each in kept if each.path in paths)


def changes_of(table: PinnedTable, fragments: Sequence[Fragment], *, overwrites: bool) -> Changes:
    """The changes that ``fragments`` describe to the base ``table``.

    A data file that is removed takes its own deletes with it; one whose rows are marked gets all of
    its own deletes in a new file.
    """
    spec_id, columns = table.metadata.default_spec_id, partition_columns(table)
    new_order = table.metadata.default_sort_order_id if row_order(table) else 0
    added, deletes, marked = [], [], []
    removed: dict[FileKey, ManifestEntry] = {}
    for document in (fragment.document for fragment in fragments):
        number = document.get("marked", document["removed"])
        place = None if number is None else table.files[number]
        if place is not None:
            removed |= {each.key: each for each in place.own_deletes}
        if place is not None and "marked" in document:
            marked.append(place.entry)
            deletes.append(new_delete_file(table, document["deletes"], place.entry))
        elif place is not None:
            removed[place.entry.key] = place.entry
        if document["added"] is None:
            continue
        if place is not None:
            values, spec = place.entry.partition, place.entry.spec_id
            order = kept_order(table, place.entry, document["assigned"])
        else:
            values, spec = new_partition(columns, document["added"]["partition"]), spec_id
            order = new_order
        added.append(new_data_file(table, document["added"], spec, values, order))
    shared = shared_files(table.files, removed)
    return Changes(added, deletes, removed, marked, overwrites, shared=shared)


def with_siblings(table: PinnedTable, changes: Changes, written: list[str]) -> Changes:
    """``changes`` of the table as it is now, and what they remove no file from under.

    The locations of new files come to ``written``.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        JobError: raised by ``DeletedRows.positions``.
        OSError: the storage refused.
    """
    siblings = _siblings(table, changes)
    if not siblings:
        return changes
    removed = {**changes.removed, **{each.key: each for each in siblings}}
    deletes = [*changes.deletes, *(_moved(table, each, written) for each in siblings)]
    return replace(changes, deletes=deletes, removed=removed)


def _siblings(table: PinnedTable, changes: Changes) -> list[ManifestEntry]:
    """The vectors that stay in files of which others go; a file that is gone is no concern."""
    shared = changes.shared
    if shared is None:
        shared = {each.path for each in changes.removed.values() if each.is_vector}
    if not shared or table.snapshot is None:
        return []
    with reading_metadata(table.place):
        listed = listed_manifests(table.storage, table.snapshot.manifest_list)
        found = entries_of(table.storage, [each for each in listed if each.content == DELETES])
    filesystem, path = table.storage.filesystem, table.storage.path
    there = {each for each in shared if filesystem.get_file_info(path(each)).is_file}
    return [each for each in found if each.path in there and each.key not in changes.removed]


def _moved(table: PinnedTable, vector: ManifestEntry, written: list[str]) -> NewDataFile:
    root, beside = table.storage.path(data_location(table)), table.storage.path(vector.path)
    path = f"{folder_of_new_version(root, beside)}/{uuid.uuid4().hex}-deletes.puffin"
    written.append(table.storage.location(path, table.metadata.location))
    return stored_anew(table, vector, path)


def stored_anew(table: PinnedTable, vector: ManifestEntry, path: str) -> NewDataFile:
    """A deletion vector in the new Puffin file ``path``; raises as ``DeletedRows.positions``."""
    marked, filesystem = str(referenced_file(vector)), table.storage.filesystem
    # A vector tells its rows without the file that it is about.
    own = DataFileDeletes(0, marked, 1 << 62, (delete_file(table, vector),))
    positions = DeletedRows(filesystem).positions(own)
    document = stored_deletes(filesystem, path, marked, positions, as_vector=True)
    data = replace(vector, record={**vector.record, "file_path": marked})
    return new_delete_file(table, document, data)
