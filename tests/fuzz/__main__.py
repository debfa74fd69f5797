"""Attacks tables with damaged and hostile files: ``make test-fuzz N=2000 [SEED=0] [MINUTES=10]``.

The exit code is 1 when an attack brought about what none may. A seed means the same attack in every
run of one commit.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.runner import run
from tests.fuzz.warehouse import build

_PROGRESS = 100


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Hostile files.")
    parser.add_argument("--attacks", type=int, required=True, help="how many to run")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no attack after so long")
    parsed = parser.parse_args()
    outcomes: Counter[str] = Counter()
    failures = 0
    deadline = time.monotonic() + 60 * parsed.minutes
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        warehouse = build(Path(folder))
        for report in run(warehouse, parsed.seed, parsed.seed + parsed.attacks):
            outcomes[report.outcome] += 1
            if report.failure:
                failures += 1
                print(f"{report.attack}\n{report.failure}", flush=True)
            if outcomes.total() % _PROGRESS == 0:
                print(f"{outcomes.total()} attacks, {failures} failures", flush=True)
            if time.monotonic() > deadline:
                print(f"out of time after seed {report.seed}")
                break
    for outcome, count in outcomes.most_common():
        print(f"{count:6} {outcome}")
    print(f"{outcomes.total()} attacks, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
