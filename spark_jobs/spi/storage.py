"""Where files are, as the engine and connectors name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow.fs as pafs


class FileLocation(NamedTuple):
    """A file or a folder: its path in a file system that executors can use."""

    filesystem: pafs.FileSystem
    path: str


@dataclass(frozen=True, slots=True)
class WarehouseStorage:
    """The warehouse as a place for files of a job beside its tables. Picklable.

    ``root`` is the warehouse as a path of ``filesystem``; ``uri`` is the same for Spark, which
    takes every character as it is. None: Spark can not reach the warehouse, only pyarrow can.
    """

    filesystem: pafs.FileSystem
    root: str
    uri: str | None
