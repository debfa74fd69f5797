"""Expires random histories of Iceberg tables: ``make test-care N=300 [SEED=7] [STEPS=14]``.

The exit code is 1 when Spark's procedure left something else.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.connectors.iceberg.care_histories.history import CareHistory
from tests.judge.iceberg_spark import IcebergSpark


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.connectors.iceberg.care_histories")
    parser.add_argument("--histories", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--steps", type=int, default=14)
    chosen = parser.parse_args()
    kinds: Counter[str] = Counter()
    problems = 0
    with tempfile.TemporaryDirectory() as folder, closing(IcebergSpark(Path(folder))) as java:
        for seed in range(chosen.seed, chosen.seed + chosen.histories):
            found = CareHistory(java, seed, kinds).differences(chosen.steps)
            problems += len(found)
            sys.stdout.write("".join(f"{each}\n\n" for each in found))
            sys.stdout.flush()
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    sys.stdout.write(f"{chosen.histories} histories, {problems} problems; {counts}\n")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
