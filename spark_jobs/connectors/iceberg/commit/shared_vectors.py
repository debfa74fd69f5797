"""Vectors that share a Puffin file with one that a commit removes are stored anew. Driver only.

An expiry of Iceberg's Java (``IncrementalFileCleanup``, 1.12) removes each file of which an expired
snapshot removed a vector, also if the table needs others of it. Java writes such files.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile, new_delete_file
from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes, DeletedRows
from spark_jobs.connectors.iceberg.format.vectors import stored_deletes
from spark_jobs.connectors.iceberg.read.scanned_files import delete_file
from spark_jobs.connectors.iceberg.table.live_files import (
    entries_of,
    listed_manifests,
    referenced_file,
)
from spark_jobs.connectors.iceberg.table.manifests import DELETES, ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.table_layout import data_location, folder_of_new_version


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
