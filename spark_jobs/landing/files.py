"""Landed files and parts of them, as passed to the tasks that read them. Imported by executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode


class FileVersion(NamedTuple):
    """What changes when a file is written again: size in bytes, and modification time in ns."""

    size: int
    modified: int | None

    @classmethod
    def of(cls, file: pafs.FileInfo) -> FileVersion:
        """The version of a file in a listing."""
        return cls(file.size, file.mtime_ns)


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file of a source, as it was when the source was listed.

    ``path`` is its path in the file system; ``name`` identifies it in errors and quarantined
    records. ``partition`` has the column values from its folder names (``day=2026-01-31``); None is
    NULL.
    """

    path: str
    name: str
    version: FileVersion
    partition: Mapping[str, str | None] = field(default_factory=dict)


class FilePart(NamedTuple):
    """The records of a file that begin at byte ``start`` or later, and before ``end`` if given."""

    file: LandedFile
    start: int = 0
    end: int | None = None


def require_version(filesystem: pafs.FileSystem, file: LandedFile) -> None:
    """Check that a file is still the one that was listed.

    Raises:
        CatalogError: SOURCE_UNREADABLE; it was written again or removed.
    """
    if FileVersion.of(filesystem.get_file_info(file.path)) != file.version:
        raise changed(file.name)


def changed(name: str) -> CatalogError:
    """The error for a file that changed after its source was listed."""
    return CatalogError(
        ErrorCode.SOURCE_UNREADABLE,
        f"{name} was written again, or removed, while it was read.",
        "Give new content a new name, or let the writer end before this statement begins.",
    )
