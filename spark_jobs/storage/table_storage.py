"""Where the files of one table, or of a source, are for Python code. Driver only.

A table's metadata names its files by their locations.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.s3_options import SCHEMES, S3Options
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.storage import FileLocation
from spark_jobs.storage.files import make_folder
from spark_jobs.storage.hdfs import hdfs_filesystem
from spark_jobs.storage.removal import BulkRemover, FileRemover, SingleRemover
from spark_jobs.storage.s3 import s3_client, s3_filesystem

_MOST_BYTES: Final = 512 * 1024 * 1024
_LOCAL: Final = "file"


@dataclass(frozen=True, slots=True)
class TableStorage:
    """The storage of a table: all of its files are there.

    ``spark_prefix`` turns a path of ``filesystem`` into one for Spark; None if Spark cannot reach
    it. ``scheme`` is that of the table's location. ``access`` holds the options of an object store,
    secrets included.
    """

    filesystem: pafs.FileSystem
    spark_prefix: str | None
    scheme: str
    access: S3Options | None = field(default=None, repr=False)

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
            access = S3Options.of(options)
            return cls(s3_filesystem(access), None, scheme, access)
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
            if stream.size() > _MOST_BYTES:
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

    def remover(self) -> FileRemover:
        """Removes many files.

        Raises:
            CatalogError: LIBRARY_MISSING.
        """
        if self.access is None:
            return SingleRemover(self.filesystem)
        return BulkRemover(s3_client(self.access))

    def remove(self, location: str) -> None:
        """Remove a file, if it is there; failures are ignored."""
        with suppress(OSError):
            self.filesystem.delete_file(self.path(location))


def _scheme(location: str) -> str:
    scheme, separator, _ = location.partition(":")
    return scheme.lower() if separator and "/" not in scheme else _LOCAL


def source_location(uri: str, options: Mapping[str, str]) -> FileLocation | None:
    """The location of files on s3:// or hdfs://, accessed with the catalog's keys and options.

    None for other schemes, and for hdfs:// if its client is not installed.
    """
    scheme, separator, path = uri.partition("://")
    if not separator:
        return None
    if scheme.lower() in SCHEMES:
        return FileLocation(s3_filesystem(S3Options.of(options)), path.rstrip("/"))
    if scheme.lower() == HDFS_SCHEME and find_spec("hdfs_native"):
        return FileLocation(hdfs_filesystem(HdfsOptions.of(uri, options)), path.rstrip("/"))
    return None
