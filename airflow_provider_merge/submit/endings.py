"""How a process of a job ended, in words."""

from __future__ import annotations

import signal
from typing import Final

from airflow_provider_merge.submit.submitter import SubmissionError

# A shell, and Spark for its Python driver, report a signal as 128 and its number.
_SIGNALS: Final = 128
_MORE_ROOM: Final = (
    "Run fewer jobs at a time there, with a pool, or use a machine with more memory."
)


def process_failure(
    what: str, code: int, *, memory: str = "", last_lines: str = ""
) -> SubmissionError:
    """The error of the process ``what`` that ended with ``code``, negative for a signal.

    ``memory`` says how much it was given, if the task can change that. ``last_lines`` are what it
    printed at the end; where it was killed with SIGKILL, they do not tell why.
    """
    number = -code if code < 0 else code - _SIGNALS
    if number not in {each.value for each in signal.Signals}:
        return SubmissionError(f"{what} ended with exit code {code}.{last_lines}")
    text = f"{what} was killed (signal {number}, {signal.Signals(number).name})"
    if number != signal.SIGKILL:
        return SubmissionError(f"{text}.{last_lines}")
    given = f": {memory}" if memory else ""
    return SubmissionError(f"{text}, often for lack of memory{given}.", _MORE_ROOM)
