"""The names of the files that one task writes. Runs on executors."""

from __future__ import annotations

import posixpath
import uuid

import pyarrow.fs as pafs

from spark_jobs.storage.files import remove_file


class TaskFiles:
    """Names files, uniquely by ``task_key``, and removes them again."""

    def __init__(self, filesystem: pafs.FileSystem, task_key: str) -> None:
        self.filesystem = filesystem
        self._task = uuid.uuid5(uuid.NAMESPACE_OID, task_key).hex[:12]
        self._paths: list[str] = []

    @property
    def number(self) -> int:
        """One that differs from file to file and from task to task."""
        return int(self._task, 16) + len(self._paths)

    def data_path(self, prefix: str, directory: str) -> str:
        """The path of a new data file."""
        return self.new_path(prefix, directory, ".parquet")

    def new_path(self, prefix: str, directory: str, suffix: str = "") -> str:
        """The path of a new file."""
        name = f"{prefix}{self._task}-{len(self._paths)}{suffix}"
        self._paths.append(posixpath.join(directory, name))
        return self._paths[-1]

    def remove(self) -> None:
        """Remove all files that were named here."""
        for path in self._paths:
            remove_file(self.filesystem, path)
