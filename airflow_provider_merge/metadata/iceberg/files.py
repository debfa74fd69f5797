"""Files of Iceberg tables, opened with the options of their catalog, whole and within bounds."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.storage.failures import unreadable
from airflow_provider_merge.storage.files import read_bytes
from airflow_provider_merge.storage.storage_arguments import storage_arguments
from spark_jobs.contract.iceberg_options import storage_options

MAX_FILE: Final = 64 * 1024 * 1024
_PACKED: Final = (".gz.metadata.json", ".metadata.json.gz")


@dataclass(frozen=True)
class StoredFile:
    """A file as pyiceberg takes it; what was packed is unpacked and named as if it never was."""

    location: str
    content: bytes = field(repr=False)

    def open(self) -> io.BytesIO:
        """Its content."""
        return io.BytesIO(self.content)


@dataclass(frozen=True)
class StorageFiles:
    """What pyiceberg calls a FileIO, for reading; ``properties`` hold secrets."""

    properties: Mapping[str, Any] = field(repr=False)

    def new_input(self, location: str) -> StoredFile:
        """A file of metadata.

        Raises:
            CatalogError: METADATA_UNREADABLE: it is gone, damaged or too large.
            OSError: the storage refused.
        """
        content = self.read(location)
        if not location.endswith(_PACKED):
            return StoredFile(location, content)
        return StoredFile(location.replace(".gz", ""), _unpacked(location, content))

    def options(self, location: str) -> dict[str, Any]:
        """How fsspec opens a file; holds secrets."""
        return storage_arguments(location, storage_options(self.properties))

    def read(self, location: str) -> bytes:
        """The content of a file.

        Raises:
            CatalogError: METADATA_UNREADABLE: it is gone, or too large.
            OSError: the storage refused.
        """
        content = read_bytes(location, self.options(location), MAX_FILE)
        if content is None:
            raise unreadable(location, "is gone")
        return content


def _unpacked(location: str, content: bytes) -> bytes:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = inflate.decompress(content, MAX_FILE)
    except zlib.error:
        raise unreadable(location, "is damaged") from None
    if not inflate.eof:
        raise unreadable(location, f"is cut off, or larger than {MAX_FILE} bytes")
    return found
