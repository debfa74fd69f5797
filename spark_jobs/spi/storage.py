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
    """The catalog's workspace, by default its warehouse: jobs put their files there. Picklable.

    ``root`` is the workspace as a path of ``filesystem``; ``uri`` is the same for Spark, which
    takes every character as it is. None: Spark cannot reach the workspace, only pyarrow can.
    """

    filesystem: pafs.FileSystem
    root: str
    uri: str | None
