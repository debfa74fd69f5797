"""Files of Iceberg tables, opened with the options of their catalog, whole and within bounds."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import read_bytes
from airflow_provider_merge.storage.locations import store_of
from airflow_provider_merge.storage.remote import storage_arguments
from spark_jobs.contract.locations import FILE_SCHEME, WAREHOUSE_SCHEMES
from spark_jobs.formats.iceberg.foreign_types import readable_file
from spark_jobs.formats.iceberg.options import storage_options

MAX_FILE: Final = 64 * 1024 * 1024
_PACKED: Final = (".gz.metadata.json", ".metadata.json.gz")


@dataclass(frozen=True)
class StoredFile:
    """A file as pyiceberg takes it, with types that it knows.

    What was packed is unpacked and named as if it never was.
    """

    location: str
    content: bytes = field(repr=False)

    def open(self) -> io.BytesIO:
        """Its content."""
        return io.BytesIO(self.content)


@dataclass(frozen=True)
class StorageFiles:
    """What pyiceberg calls a FileIO, for reading; ``properties`` hold secrets.

    ``stores`` are those of one table: its metadata leads nowhere else. None as long as the table is
    not known.
    """

    properties: Mapping[str, Any] = field(repr=False)
    stores: frozenset[tuple[str, str]] | None = None

    def of_table(self, *locations: str) -> StorageFiles:
        """The files of a table that is at ``locations``."""
        return replace(self, stores=frozenset(map(store_of, locations)))

    def new_input(self, location: str) -> StoredFile:
        """A file of metadata.

        Raises:
            CatalogError: METADATA_UNREADABLE: it is gone, damaged, too large, or not of the table.
            OSError: the storage refused.
        """
        name, content = location, self.read(location)
        if location.endswith(_PACKED):
            name, content = location.replace(".gz", ""), _unpacked(location, content)
        return StoredFile(name, readable_file(name, content))

    def options(self, location: str) -> dict[str, Any]:
        """How fsspec opens a file; holds secrets.

        Raises:
            CatalogError: METADATA_UNREADABLE: no file of the table can be there.
        """
        is_known = self.stores is None or store_of(location) in self.stores
        if not is_known or not _is_storage(location):
            raise unreadable(location, "is not on the storage of its table")
        return storage_arguments(location, storage_options(self.properties))

    def read(self, location: str) -> bytes:
        """The content of a file.

        Raises:
            CatalogError: METADATA_UNREADABLE: it is gone, too large, or not of the table.
            OSError: the storage refused.
        """
        content = read_bytes(location, self.options(location), MAX_FILE)
        if content is None:
            raise unreadable(location, "is gone")
        return content


def _is_storage(location: str) -> bool:
    """Whether tables can have files there: a path on this machine, or a URI of a known scheme."""
    scheme, host = store_of(location)
    if ".." in location.split("/") or scheme not in WAREHOUSE_SCHEMES:
        return False
    return scheme != FILE_SCHEME or (location.startswith(("/", "file:/")) and not host)


def _unpacked(location: str, content: bytes) -> bytes:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = inflate.decompress(content, MAX_FILE)
    except zlib.error:
        raise unreadable(location, "is damaged") from None
    if not inflate.eof:
        raise unreadable(location, f"is cut off, or larger than {MAX_FILE} bytes")
    return found
