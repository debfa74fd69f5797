"""Expires random histories of Iceberg tables: ``make test-care N=300 [SEED=7] [STEPS=14]``.

The exit code is 1 when Spark's procedure left something else. A session of Spark that is lost, or
has judged many histories, is replaced by a new one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from tests.connectors.iceberg.care_histories.history import CareHistory
from tests.judge.iceberg_spark import IcebergSpark, IcebergSparkError

# Histories that one session judges: its memory is small.
_AT_MOST = 100
_TOLD_AFTER = 25


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.connectors.iceberg.care_histories")
    parser.add_argument("--histories", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--steps", type=int, default=14)
    chosen = parser.parse_args()
    kinds: Counter[str] = Counter()
    done = problems = 0
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(chosen.seed, chosen.seed + chosen.histories)
        for found in _judged(Path(folder), seeds, chosen.steps, kinds):
            done, problems = done + 1, problems + len(found)
            sys.stdout.write("".join(f"{each}\n\n" for each in found))
            if done % _TOLD_AFTER == 0:
                sys.stdout.write(f"{time.strftime('%H:%M:%S')}: {done} histories\n")
            sys.stdout.flush()
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    sys.stdout.write(f"{done} histories, {problems} problems; {counts}\n")
    return int(problems > 0)


def _judged(folder: Path, seeds: range, steps: int, kinds: Counter[str]) -> Iterator[list[str]]:
    """What differs in each history; ``kinds`` counts steps, and sessions that were lost."""
    waiting, failed = list(seeds)[::-1], set[int]()
    for number in itertools.count():
        if not waiting:
            return
        with ExitStack() as stack:
            java = stack.enter_context(closing(IcebergSpark(folder / str(number))))
            for _ in range(min(_AT_MOST, len(waiting))):
                seed, own = waiting[-1], Counter[str]()
                try:
                    found = CareHistory(java, seed, own).differences(steps)
                except IcebergSparkError as error:
                    # What fails in a new session, too, is the history's.
                    if seed not in failed:
                        failed.add(seed)
                        kinds["lost sessions"] += 1
                        break
                    found = [f"seed {seed}: {error}"]
                except Exception:  # noqa: BLE001 - the others are judged, too
                    found = [f"seed {seed}: {traceback.format_exc()}"]
                waiting.pop()
                kinds.update(own)
                yield found


if __name__ == "__main__":
    sys.exit(main())
