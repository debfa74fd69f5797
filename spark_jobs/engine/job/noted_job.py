"""What jobs have in common that note in the workspace what they are about to change."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.access_rights import named_denials, writing_workspace
from spark_jobs.contract.operation_files import change_path
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.request_job import RequestJob
from spark_jobs.engine.runtime.permission import Fence
from spark_jobs.storage.files import read_note, remove_file, replace_file

if TYPE_CHECKING:
    from spark_jobs.contract.request import JobRequest
    from spark_jobs.spi.alterations import Noted
    from spark_jobs.spi.storage import WarehouseStorage


_REMEDY: Final = "Look at the table's tags, branches and snapshots; then delete the file."


@dataclass(frozen=True, slots=True)
class OperationNote:
    """Implements ``ChangeNote``: a note is of the work with this ``digest``, and of no other."""

    fence: Fence
    digest: str

    @classmethod
    def of(cls, request: JobRequest, storage: WarehouseStorage) -> OperationNote:
        """The note of the request's operation."""
        return cls(Fence.of(request, storage), request.digest())

    def read(self) -> Noted | None:
        """What an earlier try of the same work has noted; None: nothing."""
        with named_denials():
            return read_note(self.fence.storage.filesystem, self._path, self._change, _REMEDY)

    def write(self, change: Noted) -> None:
        """Note a change, unless this try was given up."""
        self.fence.require_none()
        content = json.dumps({"digest": self.digest, "change": change}).encode()
        with writing_workspace():
            replace_file(self.fence.storage.filesystem, self._path, content)

    def remove(self) -> None:
        """Remove the note, if there is one."""
        remove_file(self.fence.storage.filesystem, self._path)

    def _change(self, document: Noted) -> Noted | None:
        found: Noted = document["change"]
        return found if document["digest"] == self.digest else None

    @property
    def _path(self) -> str:
        return f"{self.fence.storage.root}/{change_path(self.fence.operation_id)}"


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
