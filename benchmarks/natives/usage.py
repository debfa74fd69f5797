"""What a process and all below it use, read from ``/proc``: memory, CPU, bytes of storage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.sampler import Sampler

_INTERVAL: Final = 0.2
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Counters:
    """What processes have used since they began, in seconds and bytes."""

    cpu: float = 0.0
    read: int = 0
    written: int = 0

    @classmethod
    def of(cls, root: int) -> Counters:
        """Those of ``root`` and all below it, ended ones included.

        Bytes are those that came from storage, not from the cache, and those that files got.
        """
        cpu, read, written = 0.0, 0, 0
        for pid in _tree(root):
            with suppress(OSError):
                # utime, stime, and those of ended children.
                cpu += sum(map(int, _stat(pid)[11:15])) / _TICKS
                lines = Path(f"/proc/{pid}/io").read_text().splitlines()
                io = {name: int(value) for name, value in (each.split(": ") for each in lines)}
                read += io["read_bytes"]
                written += io["write_bytes"]
        return cls(cpu, read, written)

    def since(self, earlier: Counters) -> Counters:
        """What was used after ``earlier``."""
        return Counters(
            self.cpu - earlier.cpu, self.read - earlier.read, self.written - earlier.written
        )


class Peak(Sampler):
    """Samples the memory of ``root`` and all below it, in bytes.

    ``java``: what is resident; ``python``: what is resident and not of a file, pages that forked
    workers share counted once; ``together``: the highest sum of both.
    """

    def __init__(self, root: int) -> None:
        self.java = self.python = self.together = 0
        self._root = root
        super().__init__(_INTERVAL)

    def sample(self) -> None:
        """See ``Sampler``."""
        java = python = 0
        for pid in _tree(self._root):
            with suppress(OSError, KeyError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                    java += _kilobytes(pid, "status", "VmRSS") * 1024
                else:
                    python += _kilobytes(pid, "smaps_rollup", "Pss_Anon", "Pss_Shmem") * 1024
        self.java, self.python = max(self.java, java), max(self.python, python)
        self.together = max(self.together, java + python)


def _kilobytes(pid: int, file: str, *names: str) -> int:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return sum(int(values[name].split()[0]) for name in names)


def _tree(root: int) -> Iterator[int]:
    """``root`` and the processes below it."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - faster
        with suppress(OSError):
            children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
    found = [root]
    for pid in found:
        yield pid
        found += children.get(pid, [])


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the third on, the state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
