"""Reads random files: ``python -m tests.landing --format csv --files 1000 [--seed 0]``.

A seed is the same file in every run. Each that was read wrong is told with its seed, and the exit
code is 1; the last line says how many files there were and which judges had a say.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from tests.landing.formats import FORMATS


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.landing", description="Random files.")
    parser.add_argument("--format", choices=sorted(FORMATS), required=True)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first file")
    parsed = parser.parse_args()
    done: Counter[str] = Counter()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="landing-") as folder:
        for seed in range(parsed.seed, parsed.seed + parsed.files):
            try:
                done.update(FORMATS[parsed.format](seed, Path(folder)))
            except AssertionError as error:
                failed += 1
                print(f"seed {seed}: {error}", flush=True)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
    print(f"{parsed.format}: {counts}; failed {failed}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
