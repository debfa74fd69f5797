"""Landed files and parts of them, as the tasks that read them get them. Imported by executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode


class FileVersion(NamedTuple):
    """What a file has another of after it was written again: bytes, and nanoseconds of a clock."""

    size: int
    modified: int | None

    @classmethod
    def of(cls, file: pafs.FileInfo) -> FileVersion:
        """The version that a listing found."""
        return cls(file.size, file.mtime_ns)


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file of a source, as it was when the source was listed.

    ``path`` is the file system's; ``name`` is what errors and quarantined records call the file.
    ``partition`` are values of columns that stand in the names of its folders (``day=2026-01-31``);
    a value None is NULL.
    """

    path: str
    name: str
    version: FileVersion
    partition: Mapping[str, str | None] = field(default_factory=dict)


class FilePart(NamedTuple):
    """The records of a file that begin at a byte from ``start`` and below ``end`` (None: all)."""

    file: LandedFile
    start: int = 0
    end: int | None = None


def require_version(filesystem: pafs.FileSystem, file: LandedFile) -> None:
    """See that a file is still the one that was listed.

    Raises:
        CatalogError: SOURCE_UNREADABLE; it was written again, or is gone.
    """
    if FileVersion.of(filesystem.get_file_info(file.path)) != file.version:
        raise changed(file.name)


def changed(name: str) -> CatalogError:
    """The error for a file that is not what it was when its source was listed."""
    return CatalogError(
        ErrorCode.SOURCE_UNREADABLE,
        f"{name} was written again, or removed, while it was read.",
        "Give new content a new name, or let the writer end before this statement begins.",
    )
