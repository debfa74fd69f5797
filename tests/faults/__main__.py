"""``make test-faults N=…``: faults until N have been run with this commit; it goes on where it was.

Prints each fault that was not survived, and the summary.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.drivers import running_drivers
from tests.faults.matrix import TABLE, WORKS, Matrix
from tests.judge.judge import read_with_java

_ROOT = Path(__file__).resolve().parents[2]
_LEDGER = _ROOT / ".faults" / "runs.jsonl"


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.check_output(command, cwd=_ROOT, text=True).strip()


def _earlier(commit: str) -> list[dict[str, str]]:
    lines = _LEDGER.read_text().splitlines() if _LEDGER.exists() else []
    return [run for run in map(json.loads, lines) if run["commit"] == commit]


def main() -> int:
    """Run faults, all of every work in turn; 1 when one was not survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--without-java", action="store_true")
    chosen = parser.parse_args()
    commit, started = _commit(), time.monotonic()
    runs = _earlier(commit)
    _LEDGER.parent.mkdir(exist_ok=True)

    def read(warehouse: Path) -> list[dict[str, object]]:
        return list(read_with_java(warehouse, TABLE))

    with tempfile.TemporaryDirectory() as folder, running_drivers() as drivers:
        matrix = Matrix(drivers, Path(folder), None if chosen.without_java else read)
        every = [fault for work in WORKS for fault in matrix.faults(work)]
        rest = itertools.islice(itertools.cycle(every), len(runs), chosen.runs)
        with _LEDGER.open("a") as ledger:
            for fault in rest:
                if chosen.minutes and time.monotonic() - started > 60 * chosen.minutes:
                    break
                try:
                    outcome = " then ".join(matrix.run(fault))
                except (AssertionError, ValueError) as error:
                    outcome = f"FAILED {error}"
                    sys.stdout.write(f"{fault}: {error}\n")
                run = {"commit": commit, "fault": str(fault), "outcome": outcome}
                runs.append(run)
                ledger.write(json.dumps(run) + "\n")
                ledger.flush()
    return _summary(runs)


def _summary(runs: list[dict[str, str]]) -> int:
    kills = sum("killed" in run["fault"] for run in runs)
    sys.stdout.write(f"{len(runs)} faults, {kills} of them SIGKILL of a process\n")
    for outcome, count in Counter(run["outcome"] for run in runs).most_common():
        sys.stdout.write(f"{count:6} {outcome}\n")
    return int(any(run["outcome"].startswith("FAILED") for run in runs))


if __name__ == "__main__":
    sys.exit(main())
