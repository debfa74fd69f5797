"""The names of the files that one task writes. Runs on executors."""

from __future__ import annotations

from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout
from spark_jobs.connectors.shared.write.task_files import TaskFiles


class PaimonTaskFiles(TaskFiles):
    """Data files belong inside the table's directory or in external paths."""

    def __init__(self, layout: NewFileLayout, task_key: str) -> None:
        super().__init__(layout.files.filesystem, task_key)
        self._layout = layout

    def data_path(self, prefix: str, directory: str) -> str:
        """The path of a new data file; ``directory`` is inside the table, even if it is not."""
        return super().data_path(prefix, self._layout.outside(directory, self.number))
