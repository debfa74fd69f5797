"""The folders in which a table keeps its files: care of the table removes nothing elsewhere.

A manifest may name any file that its writer chose. Driver only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.errors import NotSupportedError
from spark_jobs.storage.files import has_folders
from spark_jobs.storage.table_storage import TableStorage

# Where the table's properties may send new files.
_PATHS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_SLASHES: Final = re.compile("//+")


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
            NotSupportedError: the folders are not all on one storage.
        """
        metadata = table.metadata
        locations = [metadata.location, *filter(None, map(metadata.properties.get, _PATHS))]
        with reading_metadata(table.place):
            paths = [_plain(table.storage, each).rstrip("/") for each in locations]
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


def _plain(storage: TableStorage, location: str) -> str:
    path = storage.path(location)
    return _SLASHES.sub("/", path) if has_folders(storage.filesystem) else path
