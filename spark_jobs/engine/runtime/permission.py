"""What a run must still have right before it publishes, a task that runs above all.

Airflow ends the job of a task that was marked or cleared, but only seconds later.

Once the fence of a try stands, no driver of the try begins or publishes anything. A lease can only
be taken from a run that holds one. A driver that still waits for its cluster, or pauses between two
attempts, holds none, so giving it up has to leave something behind. Modelled on fencing tokens: a
later try shuts out the earlier ones before it looks at what they left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.access_rights import denied, is_denial, writing_workspace
from spark_jobs.contract.job_lines import answer_name, publish_question
from spark_jobs.contract.operation_files import fence_path
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.progress import tell_operator
from spark_jobs.errors import CommitError, ErrorCode, InternalError
from spark_jobs.storage.files import replace_file

if TYPE_CHECKING:
    from spark_jobs.contract.request import JobRequest
    from spark_jobs.spi.storage import WarehouseStorage

_STEP: Final = 0.02
# A worker that does not hear from Airflow for this many seconds is considered lost.
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True)
class Fence:
    """The fences of an operation, as this try of it sees them.

    A fence is a file of its own for each try, and its content does not matter: so writers need no
    order among each other, and no file can be half of one.
    """

    storage: WarehouseStorage
    operation_id: str
    try_number: int

    @classmethod
    def of(cls, request: JobRequest, storage: WarehouseStorage) -> Fence:
        """The fence of the request's try."""
        return cls(storage, request.operation_id, request.origin.try_number)

    def enter(self) -> None:
        """Check that this try was not given up, and give up all earlier ones.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            CommitError: RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
            OSError: the storage refused to write.
        """
        self.require_none()
        # Their drivers may still wait for their cluster.
        for number in range(self.try_number - 1, 0, -1):
            with writing_workspace():
                replace_file(self.storage.filesystem, self._path(number), b"")

    def require_none(self) -> None:
        """Check that this try was not given up; one request to the workspace.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED: it cannot be known.
            CommitError: RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE: it cannot be known.
        """
        try:
            # It is opened, because NFS clients cache names.
            self.storage.filesystem.open_input_stream(self._path(self.try_number)).close()
        except FileNotFoundError:
            return
        except OSError as error:
            if is_denial(error):
                raise denied(str(error), "workspace") from error
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"It is not known whether this try was given up: {error}",
                "Check the storage of the workspace, and the right to read there.",
            ) from error
        raise CommitError(
            ErrorCode.RUN_GIVEN_UP,
            f"Try {self.try_number} of operation {self.operation_id} was given up: its task was "
            "ended, or a later try has begun. It published nothing after that.",
            "Look at the task's other tries; clear the task to do the work.",
        )

    def _path(self, number: int) -> str:
        return f"{self.storage.root}/{fence_path(self.operation_id, number)}"


@dataclass(frozen=True, slots=True)
class LastLook:
    """Asks whoever started the job; the answer appears in ``answers``, None if nobody answers."""

    operation_id: str
    answers: Path | None = None

    def require_task(self, patience: float = _PATIENCE) -> None:
        """Check that the task is still running; wait up to ``patience`` seconds for the answer.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        if self.answers is None:
            return
        tell_operator(publish_question(self.operation_id))
        deadline = time.monotonic() + patience
        answer = self.answers / answer_name(self.operation_id)
        while not answer.exists():
            if time.monotonic() > deadline or not self.answers.exists():
                raise _given_up("nobody answers whether its task still runs")
            time.sleep(_STEP)
        ended = answer.read_text(encoding="utf-8")
        answer.unlink()
        if ended:
            raise _given_up(f"its task was ended: {ended}")


def _given_up(reason: str) -> CommitError:
    return CommitError(
        ErrorCode.RUN_GIVEN_UP,
        f"The run was given up before it was published: {reason}. The table is unchanged.",
        "Clear the task to do the work.",
    )


@dataclass(frozen=True, slots=True)
class Permission:
    """A task that still runs, a try that was not given up, and the lease of its run."""

    last_look: LastLook
    fence: Fence
    lease: Lease

    def require(self) -> None:
        """Check that the run may publish.

        Who gives a try up puts the fence first and takes the leases then, so that a lease that is
        held after there was no fence was not taken from the run before.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        self.last_look.require_task()
        # The answer may have taken minutes.
        self.fence.require_none()
        self.lease.require()
