"""The names of the files that one task writes. Runs on executors."""

from __future__ import annotations

import posixpath
import uuid

from spark_jobs.connectors.paimon.write.new_rows import NewFileLayout


class TaskFiles:
    """Names files, uniquely by ``task_key``, and removes them again."""

    def __init__(self, layout: NewFileLayout, task_key: str) -> None:
        self._layout = layout
        self._task = uuid.uuid5(uuid.NAMESPACE_OID, task_key).hex[:12]
        self._paths: list[str] = []

    def data_path(self, prefix: str, directory: str) -> str:
        """The path of a new data file; ``directory`` is inside the table, even if it is not."""
        number = len(self._paths)
        place = self._layout.outside(directory, int(self._task, 16) + number)
        return self._noted(place, f"{prefix}{self._task}-{number}.parquet")

    def index_path(self, prefix: str, directory: str) -> str:
        """The path of a new index file."""
        return self._noted(directory, f"{prefix}{self._task}-{len(self._paths)}")

    def remove(self) -> None:
        """Remove all files that were named here."""
        for path in self._paths:
            try:
                self._layout.files.filesystem.delete_file(path)
            except FileNotFoundError:
                continue

    def _noted(self, directory: str, name: str) -> str:
        self._paths.append(posixpath.join(directory, name))
        return self._paths[-1]
