"""The last look before a snapshot is published: is the job's task still running?

Airflow ends the job of a task that was marked or cleared, but only seconds later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_jobs.contract.last_look import answer_name, question
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
        tell_operator(question(self.operation_id))
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
