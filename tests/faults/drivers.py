"""Drivers in processes of their own, forked from one that has imported everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.merges import Work
from tests.support.faketime import clock

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Drivers:
    """Runs drivers in processes of their own."""

    process: subprocess.Popen[str]

    def do(self, what: str, warehouse: Path, *works: Work, **more: Any) -> Any:
        """Send a command to ``tests.faults.zygote``; its answer."""
        command = {"do": what, "warehouse": str(warehouse), "works": [*map(asdict, works)], **more}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def running_drivers(days: float = 0) -> Iterator[Drivers]:
    """The process that forks them, for as long as the context lasts.

    Its clock is so many days ahead.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.faults.zygote"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **clock(days)},
    )
    with process:
        yield Drivers(process)
        assert process.stdin is not None
        process.stdin.close()
