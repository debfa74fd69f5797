"""Removing files in an Iceberg table's folders to which no metadata refers. Driver only.

Modelled on Iceberg's ``DeleteOrphanFilesSparkAction``, but files are compared by their names: so it
does not matter how a writer spells a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.maintenance.orphan_files import (
    StoredFiles,
    name_of,
    names_of,
    needed_names,
)
from spark_jobs.connectors.iceberg.maintenance.removable_files import (
    ManifestReader,
    OwnFolders,
    locations_of,
    refuse_shared_files,
)
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.orphans import (
    DriverSearch,
    InUse,
    OrphanSearch,
    SparkSearch,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "version-hint.text"


@dataclass(frozen=True, slots=True)
class TableOrphans:
    """The orphan files of the table that was ``read``."""

    commits: MetadataCommits
    notes: BaseNotes
    read: PinnedTable
    folders: OwnFolders

    @classmethod
    def of(cls, commits: MetadataCommits, notes: BaseNotes) -> TableOrphans:
        """Those of the table of ``commits``.

        Raises:
            CatalogError, InternalError: the catalog, or metadata, cannot be read.
            NotSupportedError: files there may belong to another table.
        """
        read = commits.table()
        refuse_shared_files(commits.name, read.metadata.properties)
        folders = OwnFolders.of(read)
        _refuse_neighbours(commits, read, folders)
        return cls(commits, notes, read, folders)

    def search(self, spark: SparkSession | None) -> OrphanSearch[Any]:
        """The search, by Spark if there is a session."""
        files = self._files()
        if spark is None:
            return DriverSearch(partial(self._stored, files), self._needed)
        folders = partial(files.folders, _outermost(self.folders.roots))
        filesystem = self.read.storage.filesystem
        return SparkSearch(spark, filesystem, folders, files, self._in_use)

    def operations_since(self, now: datetime, workspace_now: datetime) -> list[datetime]:
        """When the operations began that are at work, by the clock of the table's store.

        ``now`` is what that says, ``workspace_now`` what the clock of the notes' store says.
        """
        at_work = self.notes.at_work(self.read, workspace_now)
        return [now - (workspace_now - each.since) for each in at_work]

    def _files(self) -> StoredFiles:
        metadata = self.read.metadata
        # Not those of ``write.data.path``: there, they are of another table.
        named = metadata.properties.get("write.metadata.path") or f"{metadata.location}/metadata"
        folders = [f"{self.folders.root}/metadata", self.folders.path(named.rstrip("/"))]
        for location in self._metadata_files(self.read):
            path = self.folders.path(location)
            folders.append(path and path.rpartition("/")[0])
        places = filter(None, folders)
        partitions = {field.name for spec in metadata.partition_specs for field in spec.fields}
        filesystem = self.read.storage.filesystem
        return StoredFiles(filesystem, tuple(sorted(partitions)), frozenset(places))

    def _stored(self, files: StoredFiles) -> Iterator[Any]:
        for root in _outermost(self.folders.roots):
            yield from files(root, True)

    def _needed(self) -> set[str]:
        now = self.commits.table()
        reader = ManifestReader(now)
        manifests = reader.listed(now.metadata.snapshots, are_gone=False).values()
        files = {name_of(each.location) for each in reader.live(list(manifests))}
        return files | self._metadata_names(now) | {name_of(each.path) for each in manifests}

    def _in_use(self) -> InUse:
        now = self.commits.table()
        manifests = ManifestReader(now).listed(now.metadata.snapshots, are_gone=False)
        entries = sum(each.entries for each in manifests.values())
        names = self._metadata_names(now) | {name_of(each) for each in manifests}
        paths = [now.storage.path(each) for each in manifests]
        return InUse(paths, entries, frozenset(names), names_of, needed_names)

    def _metadata_names(self, now: PinnedTable) -> set[str]:
        metadata = now.metadata
        locations = [*self._metadata_files(now), _HINT]
        locations += [each.manifest_list for each in metadata.snapshots]
        statistics = (*metadata.statistics, *metadata.partition_statistics)
        locations += [each.statistics_path for each in statistics]
        return {name_of(each) for each in locations}

    def _metadata_files(self, table: PinnedTable) -> list[str]:
        current = table.table.metadata_location
        if not current:
            raise NotSupportedError(
                f"{self.commits.name}: the catalog's server does not tell where the table's "
                "metadata is.",
                "Use the server's own cleaning.",
            )
        return [current, *(each.metadata_file for each in table.metadata.metadata_log)]


def _outermost(roots: tuple[str, ...]) -> list[str]:
    """The folders that are in no other one."""
    return [each for each in roots if not any(each.startswith(f"{other}/") for other in roots)]


def _refuse_neighbours(commits: MetadataCommits, read: PinnedTable, folders: OwnFolders) -> None:
    """Refuse where another table of the catalog has files in the table's folders.

    Raises:
        NotSupportedError: names the other table.
    """
    own = _outermost(folders.roots)
    for name, metadata in commits.catalog.other_tables(read.table.name()):
        for location in locations_of(metadata):
            path = folders.path(location)
            inside = path is not None and any(
                f"{path.rstrip('/')}/".startswith(f"{root}/") for root in own
            )
            if inside:
                raise _shared(commits.name, name, location)


def _shared(name: TableName, other: str, location: str) -> NotSupportedError:
    return NotSupportedError(
        f"{name}: the table {other} has its files at {location}, in the same folders: which of "
        "them are orphans cannot be told.",
        "Move one of the tables.",
    )
