"""The folders in which a table keeps its files: care of the table removes nothing elsewhere.

A manifest may name any file that its writer chose. Driver only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.expiry import GC_ENABLED
from spark_jobs.formats.iceberg.refused_properties import FOLDERS
from spark_jobs.storage.files import has_folders
from spark_jobs.storage.table_storage import TableStorage

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
