"""CPU seconds of a job's processes, by what they are, sampled from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from airflow_provider_merge.submit.processes import OPERATION
from tests.support.sampler import Sampler

_INTERVAL = 0.03
# A process that has just been made may not have its own program and variables yet.
_UNTIL_EXEC = 1.0


class CpuTime(Sampler):
    """Counts the processes that jobs start, and those below ``roots`` (pids).

    A process counts with what it had used when it was last seen, up to 0.03 s before its end.
    """

    def __init__(self, roots: Iterable[int] = ()) -> None:
        self._roots = tuple(roots)
        self._used: dict[tuple[int, float], tuple[str, float]] = {}
        self._counted: dict[int, psutil.Process] = {}
        self._others: set[int] = set()
        super().__init__(_INTERVAL)

    @property
    def seconds(self) -> float:
        """User and system time of all processes."""
        return sum(used for _, used in self._used.values())

    def by_kind(self) -> dict[str, float]:
        """The same by the name of the program: ``java``, ``python3``, ``bash`` …"""
        found: dict[str, float] = {}
        for kind, used in self._used.values():
            found[kind] = found.get(kind, 0.0) + used
        return found

    def sample(self) -> None:
        """See ``Sampler``."""
        for process in self._processes():
            with suppress(psutil.Error):
                times, key = process.cpu_times(), (process.pid, process.create_time())
                self._used[key] = (process.name(), times.user + times.system)

    def _processes(self) -> list[psutil.Process]:
        below = {child.pid for root in self._roots for child in psutil.Process(root).children(True)}
        running = set(psutil.pids())
        self._counted = {pid: each for pid, each in self._counted.items() if pid in running}
        self._others &= running
        for pid in running - self._counted.keys() - self._others - {os.getpid()}:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if pid in below or OPERATION in process.environ():
                    self._counted[pid] = process
                elif time.time() - process.create_time() > _UNTIL_EXEC:
                    self._others.add(pid)
        return list(self._counted.values())
