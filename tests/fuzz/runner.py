"""Runs attacks in child processes and tells what came of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.child import SECONDS_PER_ATTACK

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Report:
    """One attack; ``failure`` is None unless it brought about what no attack may."""

    seed: int
    attack: str
    outcome: str
    failure: str | None
    seconds: float


def run(warehouse: Path, first: int, last: int) -> Iterator[Report]:
    """The reports of the seeds from ``first`` up to ``last``; one that ends its process, too."""
    while first < last:
        for report in _run_child(warehouse, first, last):
            first = report.seed + 1
            yield report


def _run_child(warehouse: Path, first: int, last: int) -> Iterator[Report]:
    """The reports of one process, up to the seed that ends it."""
    command = [sys.executable, "-m", "tests.fuzz.child", str(warehouse), str(first), str(last)]
    with (
        (warehouse.parent / "child.log").open("w+") as log,
        subprocess.Popen(
            command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        seed = None
        try:
            for line in process.stdout:
                document = json.loads(line)
                seed = document["seed"]
                if "attack" in document:
                    yield Report(**document)
                    seed = None
        finally:
            process.kill() if process.poll() is None and seed is not None else None
        code = process.wait(timeout=60)
        if seed is None and code != 0:
            raise RuntimeError(f"the child could not run: {_tail(log)}")
        if seed is not None:
            how = f"ended the process ({code}), or took over {SECONDS_PER_ATTACK} s"
            yield Report(seed, f"seed {seed}", "died", f"{how}\n{_tail(log)}", 0.0)


def _tail(log: object) -> str:
    log.seek(0)  # type: ignore[attr-defined]
    return str(log.read())[-4000:]  # type: ignore[attr-defined]
