"""Reading and writing the metadata of tables, as pyiceberg asks for it. Driver only.

Implements what pyiceberg needs of its ``FileIO``: no class that a table or a server names is used.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.formats.iceberg.foreign_types import readable_file
from spark_jobs.formats.iceberg.options import storage_options
from spark_jobs.storage.table_storage import TableStorage


def table_storage(location: str, options: Mapping[str, str]) -> TableStorage:
    """The storage of ``location``; ``options`` are the catalog's, secrets included.

    Raises:
        NotSupportedError: it is of a kind that jobs cannot reach.
    """
    return TableStorage.of(location, {**options, **storage_options(options)})


class _NewFile(io.BytesIO):
    """A file that is written when it is closed."""

    def __init__(self, storage: TableStorage, location: str) -> None:
        super().__init__()
        self._storage = storage
        self._location = location

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            self._storage.write(self._location, self.getvalue())
        super().__exit__(*problem)


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """pyiceberg's ``InputFile`` and ``OutputFile``."""

    files: MetadataFiles
    location: str

    def open(self, seekable: bool = True) -> io.BytesIO:
        """The whole content, with types that pyiceberg knows."""
        del seekable
        return io.BytesIO(readable_file(self.location, self.files.read(self.location)))

    def create(self, overwrite: bool = False) -> io.BytesIO:
        """A stream to write to; names of metadata files are unique."""
        del overwrite
        return _NewFile(self.files.storage(self.location), self.location)


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """pyiceberg's ``FileIO``, for metadata files that no server writes.

    ``properties`` hold secrets.
    """

    properties: Mapping[str, str] = field(repr=False)

    def storage(self, location: str) -> TableStorage:
        """The storage of a location."""
        return table_storage(location, self.properties)

    def read(self, location: str) -> bytes:
        """The content of a file as it is."""
        return self.storage(location).read(location)

    def new_input(self, location: str) -> MetadataFile:
        """A file to read."""
        return MetadataFile(self, location)

    def new_output(self, location: str) -> MetadataFile:
        """A file to write."""
        return MetadataFile(self, location)

    def delete(self, location: str) -> None:
        """Remove a file."""
        self.storage(location).remove(location)
