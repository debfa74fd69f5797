"""The last look before a snapshot is published: does the job's task still run?

Airflow ends the job of a task that was marked or cleared, but it notices that seconds later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.contract.last_look import answer_name, question
from spark_jobs.engine.runtime.progress import log
from spark_jobs.errors import CommitError, ErrorCode

_STEP: Final = 0.02
# A worker that does not hear from Airflow for so long is taken for lost.
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True)
class LastLook:
    """Asks whoever started the job, who answers in the folder ``answers``; None: nobody does."""

    operation_id: str
    answers: Path | None = None

    def require_task(self, patience: float = _PATIENCE) -> None:
        """Check that the task still runs; wait for the answer up to so many seconds.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        if self.answers is None:
            return
        log.info("%s", question(self.operation_id))
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
