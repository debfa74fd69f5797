"""Peak memory of a process's Python workers, sampled from /proc."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.sampler import Sampler

_INTERVAL = 0.05


class PeakMemory(Sampler):
    """Samples the resident memory of this process's Python workers."""

    def __init__(self) -> None:
        self.largest_worker = 0
        super().__init__(_INTERVAL)

    def sample(self) -> None:
        """See ``Sampler``."""
        self.largest_worker = max([self.largest_worker, *_worker_sizes()])


def _worker_sizes() -> list[int]:
    """Resident bytes of this process's Python workers."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":", 1) for line in (process / "status").read_text().splitlines()
            )
            parents[int(process.name)] = int(status["PPid"])
            if b"spark_jobs.worker_daemon" in (process / "cmdline").read_bytes():
                resident[int(process.name)] = int(status["VmRSS"].split()[0]) * 1024
        except (OSError, KeyError):
            continue
    return [size for pid, size in resident.items() if os.getpid() in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found = set()
    while pid in parents:
        pid = parents[pid]
        found.add(pid)
    return found
