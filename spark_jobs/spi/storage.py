"""Locations of files, as the engine and connectors exchange them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow.fs as pafs


class FileLocation(NamedTuple):
    """A file or folder, as a path in a file system that executors can use."""

    filesystem: pafs.FileSystem
    path: str


@dataclass(frozen=True, slots=True)
class WarehouseStorage:
    """The catalog's workspace, where jobs put their files; by default its warehouse. Picklable.

    ``root`` is the path of the workspace in ``filesystem``. ``uri`` is the same location for Spark,
    which takes every character literally; None if only pyarrow can reach the workspace.
    """

    filesystem: pafs.FileSystem
    root: str
    uri: str | None
