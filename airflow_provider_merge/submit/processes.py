"""All processes of a job on this machine, found by marks in their environment, and how one ended.

spark-submit starts a JVM, the JVM the Python driver, the driver's JVM the Python workers; each can
outlive the one that started it, but all inherit the environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Final

import psutil

from airflow_provider_merge.submit.submitter import SubmissionError

# The variables of a job's environment that tell its operation, and which submission of it.
OPERATION = "AIRFLOW_MERGE_OPERATION"
SUBMISSION = "AIRFLOW_MERGE_SUBMISSION"
_ZOMBIE = psutil.STATUS_ZOMBIE
_PAUSE = 0.02
# A process that is started while the others are listed is in no list yet, and one that the kernel
# is just loading has no environment yet: it is there a look later.
_QUIET_LOOKS = 5
# A shell, and Spark for its Python driver, report a signal as 128 and its number.
_SIGNALS: Final = 128
_MORE_ROOM: Final = (
    "Run fewer jobs at a time there, with a pool, or use a machine with more memory."
)


def end_processes(marks: Mapping[str, str], *, patience: float = 2.0, timeout: float = 30.0) -> int:
    """End every process that has the marks and wait until none is left; how many there were.

    None is left when several looks in a row find none.

    Python processes are killed at once, since the driver could still commit. The JVM has
    ``patience`` seconds to remove its temporary files and leave its cluster.

    Raises:
        TimeoutError: a process still lives after ``timeout`` seconds.
    """
    started = time.monotonic()
    ended: set[int] = set()
    quiet_looks = 0
    while quiet_looks < _QUIET_LOOKS:
        alive = job_processes(marks)
        quiet_looks = 0 if alive else quiet_looks + 1
        elapsed = time.monotonic() - started
        if alive and elapsed > timeout:
            raise TimeoutError(f"processes {[each.pid for each in alive]} cannot be ended")
        for process in alive:
            try:
                if _is_jvm(process) and elapsed < patience:
                    if process.pid not in ended:
                        process.terminate()
                else:
                    process.kill()
            except psutil.NoSuchProcess:
                continue
            ended.add(process.pid)
        # Not psutil.wait_procs: it would take the launcher's exit code away from subprocess.
        time.sleep(_PAUSE)
    return len(ended)


def job_processes(marks: Mapping[str, str]) -> list[psutil.Process]:
    """The living processes of this user that have the marks; never this process."""
    processes = []
    for process in psutil.process_iter():
        try:
            marked = marks.items() <= process.environ().items()
            if marked and process.pid != os.getpid() and process.status() != _ZOMBIE:
                processes.append(process)
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or another user's
    return processes


def _is_jvm(process: psutil.Process) -> bool:
    return str(process.name()) == "java"


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
