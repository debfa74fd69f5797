"""The files that only expired snapshots need, in the folders of the table itself. Driver only.

A manifest may name any file that its writer chose: nothing is removed elsewhere. Follows Iceberg's
``ReachableFileCleanup``: a file goes if it is live in a manifest that no snapshot lists any longer,
and live in no manifest that one lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    ListedManifest,
    NamedFile,
    named_files,
    read_list,
)
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.shared.maintenance.removal_notes import FileFact, FileKind
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.expiry import GC_ENABLED
from spark_jobs.formats.iceberg.refused_properties import FOLDERS
from spark_jobs.storage.files import PARALLEL, has_folders, in_parallel
from spark_jobs.storage.table_storage import TableStorage

_SLASHES: Final = re.compile("//+")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """``root`` is the table's location, ``roots`` all folders, as paths of the storage."""

    storage: TableStorage
    root: str
    roots: tuple[str, ...]

    @classmethod
    def of(cls, table: PinnedTable) -> OwnFolders:
        """The folders of a table.

        Raises:
            CatalogError: METADATA_UNREADABLE: a location leads out of its folder.
            NotSupportedError: the folders are not all on one storage, or one is all of it.
        """
        with reading_metadata(table.place):
            locations = locations_of(table.metadata)
            paths = [_plain(table.storage, each).rstrip("/") for each in locations]
        for location, path in zip(locations, paths, strict=True):
            # On HDFS the first part is the NameNode.
            if not path.strip("/.") or (table.storage.scheme == HDFS_SCHEME and "/" not in path):
                raise NotSupportedError(
                    f"{table.place}: its folder {location} is the root of the storage, which "
                    "holds the files of everybody.",
                    "Give the table a folder of its own: its location, or the property "
                    "write.data.path.",
                )
        return cls(table.storage, paths[0], tuple(dict.fromkeys(paths)))

    def path(self, location: str) -> str | None:
        """The path of a file; None if it is on other storage or leads out of its folder."""
        try:
            return _plain(self.storage, location)
        except (ValueError, NotSupportedError):
            return None

    def has(self, path: str) -> bool:
        """Whether a file is in one of the folders, and its path stays there."""
        return ".." not in path.split("/") and any(
            path.startswith(f"{root}/") for root in self.roots
        )


def locations_of(metadata: Any) -> list[str]:
    """Where a table with pyiceberg's ``metadata`` keeps files; its own location is the first."""
    return [metadata.location, *filter(None, map(metadata.properties.get, FOLDERS))]


def _plain(storage: TableStorage, location: str) -> str:
    path = storage.path(location)
    return _SLASHES.sub("/", path) if has_folders(storage.filesystem) else path


def refuse_shared_files(name: TableName, properties: Mapping[str, str]) -> None:
    """Refuse to remove files of a table that says that others may need them.

    Raises:
        NotSupportedError: ``gc.enabled`` is false.
    """
    if properties.get(GC_ENABLED, "true").lower() != "true":
        raise NotSupportedError(
            f"{name} has the property {GC_ENABLED} = {properties[GC_ENABLED]}: its files may "
            "belong to other tables, too.",
            f"Set {GC_ENABLED} to true if they do not, or use the catalog's own cleaning.",
        )


class ManifestReader:
    """Reads each manifest list once, over all tries of an expiry."""

    def __init__(self, table: PinnedTable) -> None:
        self._storage = table.storage
        self._place = table.place
        self._lists: dict[str, tuple[ListedManifest, ...]] = {}
        self._manifests: dict[str, ListedManifest] = {}

    def listed(self, snapshots: Iterable[Any], *, are_gone: bool) -> dict[str, ListedManifest]:
        """The manifests of snapshots by location.

        ``are_gone``: without those of lists that an interrupted expiry has removed.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: a file is encrypted.
        """
        lists = dict.fromkeys(each.manifest_list for each in snapshots)
        unread = [each for each in lists if each not in self._lists]
        for location, manifests in self._parsed(unread, read_list, are_gone=are_gone):
            found = [self._manifests.setdefault(each.path, each) for each in manifests]
            self._lists[location] = tuple(found)
        return {each.path: each for location in lists for each in self._lists.get(location, ())}

    def live(
        self, manifests: Collection[ListedManifest], *, are_gone: bool = False
    ) -> Iterator[NamedFile]:
        """The live files of manifests; raises as ``listed``."""
        chosen = [each.path for each in manifests if each.may_have_live_files]
        for _, files in self._parsed(chosen, _named, are_gone=are_gone):
            yield from files

    def _parsed(
        self, locations: Sequence[str], parse: Callable[[bytes], list[T]], *, are_gone: bool
    ) -> Iterator[tuple[str, list[T]]]:
        read = partial(self._read, are_gone=are_gone)
        for start in range(0, len(locations), PARALLEL):
            part = locations[start : start + PARALLEL]
            with reading_metadata(self._place):
                contents = in_parallel(read, part)
            for location, content in zip(part, contents, strict=True):
                if content is not None:
                    with reading_metadata(self._place):
                        parsed = parse(content)
                    yield location, parsed

    def _read(self, location: str, *, are_gone: bool) -> bytes | None:
        try:
            return self._storage.read(location)
        except FileNotFoundError:
            if are_gone:
                return None
            raise


def _named(content: bytes) -> list[NamedFile]:
    return list(named_files(content))


class RemovableFiles:
    """Files that may go, in ``facts`` by path; those ``outside`` of the table's folders stay."""

    def __init__(self, reader: ManifestReader, folders: OwnFolders) -> None:
        self._reader = reader
        self._folders = folders
        self._looked_at: set[str] = set()
        self.facts: dict[str, FileFact] = {}
        self.outside: set[str] = set()

    def add(self, metadata: Any, expiring: Collection[int]) -> None:
        """Add what snapshots of pyiceberg's ``metadata`` need and no other one lists.

        Raises: as ``ManifestReader.listed``.
        """
        gone = [each for each in metadata.snapshots if each.snapshot_id in expiring]
        stay = [each for each in metadata.snapshots if each.snapshot_id not in expiring]
        kept = self._reader.listed(stay, are_gone=False)
        listed = self._reader.listed(gone, are_gone=True)
        manifests = [each for path, each in listed.items() if path not in kept]
        for snapshot in gone:
            self._add(snapshot.manifest_list, "manifest", 0)
        for each in manifests:
            self._add(each.path, "manifest", int(each.record.get("manifest_length") or 0))
        for file in self._reader.live(manifests, are_gone=True):
            self._add(file.location, "data" if file.content == DATA else "index", file.size)
        for statistics in _statistics(metadata, expiring):
            self._add(statistics.statistics_path, "manifest", statistics.file_size_in_bytes)

    def keep(self, metadata: Any, expiring: Collection[int] = ()) -> None:
        """Take out what snapshots of ``metadata`` need that do not expire.

        Raises: as ``ManifestReader.listed``.
        """
        stay = [each for each in metadata.snapshots if each.snapshot_id not in expiring]
        needed = self._reader.listed(stay, are_gone=False)
        ids = {each.snapshot_id for each in stay}
        named = [*(each.manifest_list for each in stay), *needed]
        named += [each.statistics_path for each in _statistics(metadata, ids)]
        for location in named:
            self._take_out(location)
        new = [each for path, each in needed.items() if path not in self._looked_at]
        if any(fact.kind != "manifest" for fact in self.facts.values()):
            for file in self._reader.live(new):
                self._take_out(file.location)
            self._looked_at.update(each.path for each in new)

    def _add(self, location: str, kind: FileKind, size: int) -> None:
        path = self._folders.path(location)
        if path is None or not self._folders.has(path):
            self.outside.add(location)
        else:
            self.facts[path] = FileFact(kind, size)

    def _take_out(self, location: str) -> None:
        self.outside.discard(location)
        path = self._folders.path(location)
        if path is not None:
            self.facts.pop(path, None)


def _statistics(metadata: Any, ids: Collection[int]) -> list[Any]:
    """The statistics and partition statistics of snapshots."""
    found = [*metadata.statistics, *metadata.partition_statistics]
    return [each for each in found if each.snapshot_id in ids]
