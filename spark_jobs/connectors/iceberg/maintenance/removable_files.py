"""The files that only expired snapshots need. Driver only.

Follows Iceberg's ``ReachableFileCleanup``: a file goes if it is live in a manifest that no snapshot
lists any longer, and live in no manifest that one lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from spark_jobs.connectors.iceberg.maintenance.own_folders import OwnFolders
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
from spark_jobs.storage.parallel import PARALLEL, in_parallel

T = TypeVar("T")


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
