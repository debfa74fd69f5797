"""Which files in an Iceberg table's folders can be orphans. Runs on executors, too.

Follows Iceberg's ``DeleteOrphanFilesSparkAction``: names that begin with ``_`` or ``.`` are hidden,
but not folders of partition fields of such a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.iceberg.table.manifests import live_of
from spark_jobs.connectors.shared.maintenance.orphan_tasks import Names, StoredFile
from spark_jobs.connectors.shared.maintenance.removal_notes import FileKind
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.records import records
from spark_jobs.storage.files import own_files

_METADATA_FILES: Final = (".metadata.json", ".metadata.json.gz")
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Lists files. ``partitions`` are the names of the table's partition fields.

    ``metadata_folders`` are those of the table's metadata files: such a file elsewhere is of
    another table.
    """

    filesystem: pafs.FileSystem
    partitions: tuple[str, ...]
    metadata_folders: frozenset[str]

    def __call__(self, folder: str, is_deep: bool) -> Iterator[StoredFile]:
        """The files in ``folder`` that can be orphans; ``is_deep``: and in the folders below.

        Raises:
            NotSupportedError: another table is there.
        """
        for info in own_files(self.filesystem, folder, recursive=is_deep):
            if info.type != pafs.FileType.File or info.mtime_ns is None:
                continue
            place, _, name = info.path.rpartition("/")
            if name.endswith(_METADATA_FILES) and place not in self.metadata_folders:
                raise NotSupportedError(
                    f"{info.path} is the metadata of another table inside of the table's folders: "
                    "which files are orphans cannot be told.",
                    "Move one of the tables, or remove what is left of it.",
                )
            parts = info.path.removeprefix(f"{folder}/").split("/")
            if not any(self.is_hidden(each) for each in parts):
                kind: FileKind = "manifest" if place in self.metadata_folders else "data"
                yield StoredFile(info.path, kind, info.size or 0, info.mtime_ns // 1000)

    def is_hidden(self, name: str) -> bool:
        """Whether a file or folder of this name is left alone."""
        shown = tuple(f"{each}=" for each in self.partitions)
        return name.startswith(_HIDDEN) and not name.startswith(shown)

    def folders(self, roots: Sequence[str], enough: int) -> list[tuple[str, bool]]:
        """Folders that together hold all files of ``roots``, about ``enough``.

        Of each is said whether it stands for the folders below, too.
        """
        folders, open_ = list[tuple[str, bool]](), list(roots)
        while open_ and len(folders) + len(open_) < enough:
            inside = [each for folder in open_ for each in self._subfolders(folder)]
            folders += [(each, False) for each in open_]
            open_ = inside
        return [*folders, *((each, True) for each in open_)]

    def _subfolders(self, folder: str) -> list[str]:
        infos = own_files(self.filesystem, folder, recursive=False)
        folders = [each for each in infos if each.type == pafs.FileType.Directory]
        return sorted(each.path for each in folders if not self.is_hidden(each.base_name))


def names_of(content: bytes) -> Names:
    """The names of the live files in a manifest.

    Raises:
        KeyError, TypeError, ValueError: it is not a manifest.
    """
    files = live_of(records(open_manifest(content)))
    return Names(frozenset((name_of(each.location), b"") for each in files), frozenset())


def needed_names(manifests: Mapping[int, Names], stored: Set[str]) -> set[str]:
    """The names among ``stored`` that any of the manifests has."""
    return {name for each in manifests.values() for name, _ in each.adds if name in stored}


def name_of(location: str) -> str:
    """The last part of a location."""
    return location.rpartition("/")[2]
