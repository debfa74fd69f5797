"""What a run must still have right before it publishes, a task that runs above all.

Airflow ends the job of a task that was marked or cleared, but only seconds later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.contract.job_lines import answer_name, publish_question
from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.runtime.progress import tell_operator
from spark_jobs.errors import CommitError, ErrorCode

_STEP: Final = 0.02
# A worker that does not hear from Airflow for this many seconds is considered lost.
_PATIENCE: Final = 300.0


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
