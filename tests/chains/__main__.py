"""Runs random chains: ``python -m tests.chains --chains 36 [--seed 0] [--runs 50]``.

Seeds choose the kinds of tables: 36 in a row have all pairs, and all ways to produce a changelog.
``--pair key:append``: these kinds.
The exit code is 1 when one went wrong; its history is printed, and the next one begins.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.chains.chain import Chain, ChainError, Pair
from tests.judge.iceberg_spark import IcebergSpark
from tests.support.spark_session import local_session


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chains", description=__doc__)
    parser.add_argument("--chains", type=int, default=36, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--runs", type=int, default=50, help="of each chain")
    parser.add_argument("--pair", help="kinds of source and target, with a colon between")
    parser.add_argument("--minutes", type=float, help="start no chain after so long")
    parsed = parser.parse_args()
    pair = Pair(*parsed.pair.split(":")) if parsed.pair else None
    until = float("inf") if parsed.minutes is None else time.monotonic() + 60 * parsed.minutes
    failed, total = [], Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="chains-") as text,
        closing(IcebergSpark(Path(text) / "judge")) as judge,
        local_session(Path(text) / "spark", 1, interpreted=True) as spark,
    ):
        for seed in range(parsed.seed, parsed.seed + parsed.chains):
            if time.monotonic() > until:
                print(f"out of time before seed {seed}")
                break
            began = time.monotonic()
            chain = Chain(spark, Path(text) / str(seed), judge, seed, pair)
            try:
                seen = chain.play(parsed.runs)
            except ChainError as error:
                failed.append(seed)
                print(f"seed {seed}: {error}", flush=True)
                continue
            total += seen
            seconds = time.monotonic() - began
            print(f"seed {seed}: {chain.pair}: {seconds:.0f} s, {dict(seen)}", flush=True)
    print(f"{dict(total)}\nfailed: {failed}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
