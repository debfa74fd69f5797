"""Compares conditions by every evidence with rows: ``make test-evidence N=20000 [SEED=7]``.

A combination is a condition, a layout of a file, a kind of table or source, and a reader. The exit
code is 1 when one differs.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from tests.evidence.differential import KINDS, Tally, compare, expected, readers
from tests.evidence.predicates import predicates
from tests.evidence.statements import STATEMENT_TABLES, run_statements
from tests.support.spark_session import local_session


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    parser.add_argument("--combinations", type=int, default=20_000, help="at least so many")
    parser.add_argument("--seed", type=int, default=0, help="of the order of conditions")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of tables and sources")
    parsed = parser.parse_args()
    kinds = parsed.kinds.split(",")
    conditions = predicates()
    random.Random(parsed.seed).shuffle(conditions)
    tally = Tally()
    with (
        tempfile.TemporaryDirectory() as folder,
        local_session(Path(folder) / "spark", interpreted=True) as spark,
        fixed_settings(spark, meaningful_settings("Europe/Berlin")),
    ):
        for number, kind in enumerate(kinds, start=1):
            made = readers(spark, kind, Path(folder) / kind)
            start, wanted_here = 0, parsed.combinations * number // len(kinds)
            while tally.combinations < wanted_here and start < len(conditions):
                some = conditions[start : start + 20]
                compare(kind, made, expected(spark, some), tally)
                start += len(some)
                _tell(kind, tally)
            if kind in STATEMENT_TABLES:
                run_statements(spark, kind, Path(folder) / f"{kind}-statements", tally)
                _tell(kind, tally)
    told = f"{tally.combinations} combinations and {tally.statements} statements"
    print(f"{told}, {len(tally.failures)} differ")
    return int(bool(tally.failures))


def _tell(kind: str, tally: Tally) -> None:
    """Print how far the run is, and what differed since the last time."""
    print(f"{kind}: {tally.combinations} combinations, {tally.statements} statements", flush=True)
    for each in tally.failures[tally.told :]:
        print(each, flush=True)
    tally.told = len(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
