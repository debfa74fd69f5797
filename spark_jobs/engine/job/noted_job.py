"""What jobs have in common that note in the workspace what they are about to change."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.operation_note import OperationNote


@dataclass(frozen=True, slots=True)
class NotedJob(RequestJob):
    """A request without rows and without a snapshot: a retry finds by its note what was done."""

    def release(self, result: JobResult) -> None:
        """Forget what was about to be changed, once the result says what was."""
        if result.error is None:
            with contextlib.suppress(OSError):  # what is left goes with outdated results
                self.note.remove()

    @property
    def fence(self) -> Fence:
        """The fence of this try."""
        return Fence.of(self.request, self.connector.storage)

    @property
    def note(self) -> OperationNote:
        """What is about to be changed."""
        return OperationNote.of(self.request, self.connector.storage)
