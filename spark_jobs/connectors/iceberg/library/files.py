"""Where the files of a table are, and reading those of its metadata. Driver only.

Implements what pyiceberg needs of its ``FileIO``: no class that a table or a server names is used.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.iceberg_options import storage_options
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.s3_options import S3Options
from spark_jobs.errors import NotSupportedError
from spark_jobs.storage.files import make_folder
from spark_jobs.storage.hdfs import hdfs_filesystem
from spark_jobs.storage.s3 import s3_filesystem

MOST_BYTES: Final = 512 * 1024 * 1024
_LOCAL: Final = "file"


@dataclass(frozen=True, slots=True)
class TableStorage:
    """The storage of a table: all of its files are there.

    ``spark_prefix`` turns a path of ``filesystem`` into one for Spark; None if Spark cannot reach
    it. ``scheme`` is that of the table's location.
    """

    filesystem: pafs.FileSystem
    spark_prefix: str | None
    scheme: str

    @classmethod
    def of(cls, location: str, options: Mapping[str, str]) -> TableStorage:
        """The storage of ``location``; ``options`` are the catalog's, secrets included.

        Raises:
            NotSupportedError: it is of a kind that jobs cannot reach.
        """
        scheme = _scheme(location)
        if scheme == _LOCAL:
            return cls(pafs.LocalFileSystem(), "file://", scheme)
        if scheme in S3_SCHEMES:
            return cls(s3_filesystem(S3Options.of(storage_options(options))), None, scheme)
        if scheme == HDFS_SCHEME:
            return cls(hdfs_filesystem(HdfsOptions.of(location, options)), "hdfs://", scheme)
        raise NotSupportedError(
            f"The table at {location} is on storage of the kind {scheme}, which jobs cannot reach.",
            "Keep its files on a local path, hdfs:// or s3://.",
        )

    def path(self, location: str) -> str:
        """The path of a file in ``filesystem``.

        Raises:
            ValueError: its location leaves a folder through ``..``.
            NotSupportedError: it is on other storage.
        """
        scheme = _scheme(location)
        if ".." in location.split("/"):
            raise ValueError(f"the location {location[:200]} leads out of its folder")
        if scheme != self.scheme and not {scheme, self.scheme} <= set(S3_SCHEMES):
            raise NotSupportedError(
                f"The table is on storage of the kind {self.scheme}, its file {location} is not.",
                "Move the files of the table to one storage with the engine that made it.",
            )
        if scheme == _LOCAL:
            return "/" + location.removeprefix("file:").lstrip("/")
        return location.partition("://")[2]

    def read(self, location: str) -> bytes:
        """The content of a metadata file.

        Raises:
            ValueError: it is larger than any.
            OSError: the storage refused.
        """
        with self.filesystem.open_input_file(self.path(location)) as stream:
            if stream.size() > MOST_BYTES:
                raise ValueError(f"{location} has {stream.size()} bytes")
            content: bytes = stream.read()
        return content

    def location(self, path: str, like: str) -> str:
        """The location of a file at ``path``, spelled as ``like``, a location on the storage."""
        if self.scheme == _LOCAL:
            if like.startswith("/"):
                return path
            return f"file://{path}" if like.startswith("file://") else f"file:{path}"
        return f"{like.partition('://')[0]}://{path}"

    def write(self, location: str, content: bytes) -> None:
        """Write a new file.

        Raises:
            OSError: the storage refused.
        """
        path = self.path(location)
        make_folder(self.filesystem, path.rpartition("/")[0])
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(content)

    def remove(self, location: str) -> None:
        """Remove a file, if it is there; failures are ignored."""
        with suppress(OSError):
            self.filesystem.delete_file(self.path(location))


def _scheme(location: str) -> str:
    scheme, separator, _ = location.partition(":")
    return scheme.lower() if separator and "/" not in scheme else _LOCAL


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
        """The whole content."""
        del seekable
        return io.BytesIO(self.files.storage(self.location).read(self.location))

    def create(self, overwrite: bool = False) -> io.BytesIO:
        """A stream to write to; names of metadata files are unique."""
        del overwrite
        return _NewFile(self.files.storage(self.location), self.location)


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """pyiceberg's ``FileIO``, for the table metadata files of SQL catalogs.

    ``properties`` hold secrets.
    """

    properties: Mapping[str, str] = field(repr=False)

    def storage(self, location: str) -> TableStorage:
        """The storage of a location."""
        return TableStorage.of(location, self.properties)

    def new_input(self, location: str) -> MetadataFile:
        """A file to read."""
        return MetadataFile(self, location)

    def new_output(self, location: str) -> MetadataFile:
        """A file to write."""
        return MetadataFile(self, location)

    def delete(self, location: str) -> None:
        """Remove a file."""
        self.storage(location).remove(location)
