"""Runs random histories of Iceberg tables: ``make test-histories N=100 [SEED=7] [STEPS=8]``.

The exit code is 1 when a table had wrong rows, or somebody could not go on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.connectors.iceberg.histories.together import Histories
from tests.judge.iceberg_spark import IcebergSpark
from tests.support.spark_session import local_session

_TOGETHER = 20


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.connectors.iceberg.histories")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--steps", type=int, default=8)
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.histories)
    kinds: Counter[str] = Counter()
    problems = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        local_session(Path(folder, "spark"), shuffle_partitions=2, interpreted=True) as spark,
        closing(IcebergSpark(Path(folder))) as java,
    ):
        for first in seeds[::_TOGETHER]:
            some, started = range(first, min(first + _TOGETHER, seeds.stop)), time.monotonic()
            histories = Histories(spark, java, some, kinds)
            histories.run(chosen.steps)
            problems += len(histories.problems)
            seconds = time.monotonic() - started
            sys.stdout.write(f"seeds {some[0]} to {some[-1]}, {seconds:.0f} s\n")
            sys.stdout.write("".join(f"{each}\n\n" for each in histories.problems))
            sys.stdout.flush()
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    sys.stdout.write(f"{chosen.histories} histories, {problems} problems; {counts}\n")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
