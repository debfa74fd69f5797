"""The files that snapshots and tags need, according to their manifests. Driver only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.connectors.paimon.format.locations import external_roots, path_beside
from spark_jobs.connectors.paimon.format.manifest_entries import (
    BucketKey,
    ManifestFiles,
    NamedFile,
    files_of_manifest,
    live_files,
    require_file_name,
)
from spark_jobs.connectors.paimon.library import index_manifest, manifest_files, table_schema
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_within,
)
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.maintenance.removal_notes import FileFact, FileKind
from spark_jobs.errors import CatalogError
from spark_jobs.formats.paimon.metadata_files import manifest_folder
from spark_jobs.storage.files import in_parallel


@dataclass(frozen=True, slots=True)
class _Root:
    """What a snapshot or tag refers to.

    ``manifests`` has the number of entries by manifest name. ``metadata`` and ``indexes`` are
    paths.
    """

    manifests: Mapping[str, int]
    metadata: frozenset[str]
    indexes: frozenset[str]


@dataclass(frozen=True, slots=True)
class References:
    """What snapshots and tags refer to.

    ``roots`` has the manifest names of each of them, ``manifests`` the number of entries by
    manifest name, and ``metadata`` the names of all files that they need apart from data files.
    """

    roots: Sequence[Collection[str]]
    manifests: Mapping[str, int]
    metadata: frozenset[str]


class Reachability:
    """Reads each metadata file only once; ``facts`` has every file found so far, by path."""

    def __init__(self, table: PinnedTable) -> None:
        self._table = table
        self._roots: dict[tuple[Any, ...], _Root] = {}
        self._manifests: dict[str, ManifestFiles] = {}
        self._directories: dict[tuple[bytes, int], str] = {}
        self._folder = manifest_folder(table.path)
        self._allowed: set[str] | None = None
        self.facts: dict[str, FileFact] = {}

    def held(self, snapshots: Iterable[Any]) -> set[str]:
        """The paths of all files that are needed to read the snapshots or tags.

        Skips a snapshot whose metadata is partly gone, because another engine was interrupted while
        it removed the snapshot.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        roots = self._readable(list(snapshots))
        return self._needed(roots, set(self.facts))

    def needed(self, snapshots: Iterable[Any], among: set[str] | None = None) -> set[str]:
        """The paths, of those in ``among`` if given, that are needed to read the snapshots or tags.

        Raises:
            CatalogError: METADATA_UNREADABLE: something that they refer to cannot be read.
        """
        roots = self._read(snapshots)
        return self._needed(roots, set(self.facts) if among is None else among)

    def references(self, snapshots: Iterable[Any]) -> References:
        """What the snapshots or tags refer to, without reading the manifests.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        roots = self._roots_of(snapshots)
        manifests = {name: n for root in roots for name, n in root.manifests.items()}
        paths = {path for root in roots for path in root.metadata | root.indexes}
        return References(
            [root.manifests for root in roots],
            manifests,
            frozenset(path.rpartition("/")[2] for path in paths),
        )

    def _needed(self, roots: Sequence[_Root], among: set[str]) -> set[str]:
        files = live_files([root.manifests for root in roots], self._manifests, among)
        for root in roots:
            files |= (root.metadata | root.indexes) & among
        return files

    def _readable(self, snapshots: Sequence[Any]) -> list[_Root]:
        """The roots of the snapshots whose metadata is complete."""
        try:
            return self._read(snapshots)
        except CatalogError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if len(snapshots) == 1:
                return []
        return [root for each in snapshots for root in self._readable([each])]

    def _roots_of(self, snapshots: Iterable[Any]) -> list[_Root]:
        distinct = {_identity(snapshot): snapshot for snapshot in snapshots}
        unread = [key for key in distinct if key not in self._roots]
        with reading_metadata(place_of_metadata(self._table.table)):
            read = in_parallel(lambda key: self._root(distinct[key]), unread)
        self._roots |= zip(unread, read, strict=True)
        return [self._roots[key] for key in distinct]

    def _read(self, snapshots: Iterable[Any]) -> list[_Root]:
        roots = self._roots_of(snapshots)
        names = dict.fromkeys(name for root in roots for name in root.manifests)
        new = [name for name in names if name not in self._manifests]
        self._manifests |= zip(new, in_parallel(self._manifest, new), strict=True)
        return roots

    def _root(self, snapshot: Any) -> _Root:
        listed = manifest_files.listed_manifests(self._table.table, snapshot)
        lists = {
            snapshot.base_manifest_list: snapshot.base_manifest_list_size,
            snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
            snapshot.index_manifest: 0,
        }
        changelog = manifest_files.listed_changelog(self._table.table, snapshot)
        if changelog is not None:
            lists[snapshot.changelog_manifest_list] = snapshot.changelog_manifest_list_size
            listed = [*listed, *changelog]
        sizes = {name: size or 0 for name, size in lists.items() if name is not None}
        for manifest in listed:
            sizes[manifest.file_name] = manifest.file_size
            sizes.update(dict.fromkeys(manifest.extra_files or (), 0))
        metadata = set()
        for name, size in sizes.items():
            require_file_name("manifest", name)
            metadata.add(self._noted(f"{self._folder}/{name}", "manifest", size))
        if snapshot.statistics is not None:
            path = f"{self._table.path}/statistics/{snapshot.statistics}"
            metadata.add(self._noted(path, "manifest", 0))
        indexes = self._indexes(snapshot)
        entries = {e.file_name: e.num_added_files + e.num_deleted_files for e in listed}
        return _Root(entries, frozenset(metadata), frozenset(indexes))

    def _indexes(self, snapshot: Any) -> list[str]:
        files = index_manifest.index_files(self._table.table, snapshot)
        return [self._noted(e.path, "index", e.entry.index_file.file_size) for e in files]

    def _manifest(self, name: str) -> ManifestFiles:
        return files_of_manifest(manifest_files.named_files(self._table.table, name), self._paths)

    def _paths(self, entry: NamedFile) -> list[str]:
        """The paths of a data file and its extra files, such as its index."""
        if entry.external_path is not None:
            path = path_beside(table_schema.table_path(self._table.table), entry.external_path)
        else:
            path = f"{self._directory(entry.partition, entry.bucket)}/{entry.name}"
        folder = path.rpartition("/")[0]
        beside = [self._noted(f"{folder}/{name}", "data", 0) for name in entry.extra_files]
        return [self._noted(path, "data", entry.size), *beside]

    def _directory(self, partition: bytes, bucket: int) -> str:
        if (partition, bucket) not in self._directories:
            values = manifest_files.partition_values(self._table.table, partition)
            self._directories[partition, bucket] = self._table.files.bucket_directory(
                BucketKey(values, bucket)
            )
        return self._directories[partition, bucket]

    def _noted(self, path: str, kind: FileKind, size: int) -> str:
        if path not in self.facts:
            with reading_metadata(place_of_metadata(self._table.table)):
                require_within(path, self.roots if kind != "manifest" else {self._table.path})
            self.facts[path] = FileFact(kind, size)
        return path

    @property
    def roots(self) -> set[str]:
        """The directories that may contain files of the table."""
        if self._allowed is None:
            roots = {self._table.path}
            for options in table_schema.all_options(self._table.table):
                roots |= external_roots(options)
            self._allowed = roots
        return self._allowed


def _identity(snapshot: Any) -> tuple[Any, ...]:
    """The fields that decide which files a snapshot or tag refers to."""
    return (
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.changelog_manifest_list,
        snapshot.index_manifest,
        snapshot.statistics,
    )
