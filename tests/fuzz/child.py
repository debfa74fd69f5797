"""Runs attacks in a process of its own, with little memory: a crash or a hang is an outcome too.

``python -m tests.fuzz.child WAREHOUSE FIRST LAST`` prints a line of JSON before and after each.
"""

# ruff: noqa: T201 - the parent reads the lines

from __future__ import annotations

import faulthandler
import json
import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from spark_jobs.errors import JobError
from tests.fuzz.exercise import exercise
from tests.fuzz.warehouse import attack, attacked_copy

SECONDS_PER_ATTACK = 60
# Above what the process has mapped when it starts.
MEMORY = 1024**3


def main() -> None:
    """The command."""
    warehouse, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        exercise(Path(shutil.copytree(warehouse, Path(folder) / "warm" / "warehouse")))
        limit = _mapped() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for seed in range(first, last):
            print(json.dumps({"seed": seed}), flush=True)
            faulthandler.dump_traceback_later(SECONDS_PER_ATTACK, exit=True)
            print(json.dumps(_run(warehouse, seed, Path(folder) / str(seed))), flush=True)
            faulthandler.cancel_dump_traceback_later()


def _run(warehouse: Path, seed: int, folder: Path) -> dict[str, object]:
    started = time.monotonic()
    chosen = attack(warehouse, seed)
    failure = None
    outcome = "failed"
    try:
        outcome = exercise(attacked_copy(warehouse, chosen, folder))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        failure = "".join(traceback.format_exception(error))[-4000:]
        if isinstance(error, JobError):
            failure = f"{error.code.name} got out\n{failure}"
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "seed": seed,
        "attack": str(chosen),
        "outcome": outcome,
        "failure": failure,
        "seconds": round(time.monotonic() - started, 2),
    }


def _mapped() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
