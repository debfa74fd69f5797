"""Runs random statements until enough have been: ``make test-property N=3000 [SEED=7]``.

Each seed is a table with three statements. ``PLAN=prepared`` runs only merges, and only those that
the plan can run; the last lines say how many did. The ledger (``.property/seeds.jsonl``, one for
each plan) gets a line per seed, so that a run that was ended goes on where it stopped: with a seed,
those of its range are run that were not run with this commit; without one, seeds that were never
run at all. The exit code is 1 when a seed failed; what fails is told as the smallest chain that
still does.
"""

# ruff: noqa: T201 - a command speaks on the terminal

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_jobs.engine.merge.physical_plan import Plan
from tests.property.cases import KINDS, STATEMENTS_PER_TABLE, kind_of
from tests.property.ledger import ROOT, Ledger, Run, current_commit, summary
from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner
from tests.support.spark_session import local_session
from tests.support.table_kinds import BUILT, EVOLVING, ICEBERG, TRACKED, TableKind, named_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROGRESS = 10
# Kinds of tables that seeds do not choose by themselves.
_OTHERS = {"rewritten": TRACKED, "columns": EVOLVING, "iceberg": ICEBERG}


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.property", description="Random tests.")
    parser.add_argument("--statements", type=int, required=True, help="how many to run")
    parser.add_argument("--seed", type=int, help="the first; default: the first never run")
    parser.add_argument("--kinds", help="only seeds of these kinds of tables, with commas")
    parser.add_argument(
        "--plan", choices=get_args(Plan), help="only merges, under this plan, of append tables"
    )
    parser.add_argument(
        "--others",
        choices=_OTHERS,
        help="Iceberg tables, or tables that track rows, whose ids Java reads",
    )
    parser.add_argument("--changes", action="store_true", help="compare what checks see, too")
    parser.add_argument("--minutes", type=float, help="start no seed after so long")
    parser.add_argument("--ledger", type=Path, help="default: one for each plan, in .property")
    parsed = parser.parse_args()
    of_plan = f"seeds-{parsed.plan}" if parsed.plan else "seeds"
    of_plan += f"-{parsed.others}" if parsed.others else ""
    of_plan += "-changes" if parsed.changes else ""
    path = parsed.ledger or ROOT / ".property" / f"{of_plan}.jsonl"
    ledger, commit = Ledger(path), current_commit()
    first = ledger.next_seed() if parsed.seed is None else parsed.seed
    kinds = BUILT if parsed.plan else KINDS
    if parsed.kinds:
        kinds = named_kinds(parsed.kinds.split(","), kinds)
    fitting = (seed for seed in itertools.count(first) if parsed.others or kind_of(seed) in kinds)
    seeds = list(itertools.islice(fitting, -(-parsed.statements // STATEMENTS_PER_TABLE)))
    missing = ledger.missing(seeds, commit)
    print(f"commit {commit}: {len(missing)} of {len(seeds)} seeds from {first} to run", flush=True)
    deadline = None if parsed.minutes is None else time.monotonic() + 60 * parsed.minutes
    _run(
        missing,
        ledger,
        commit,
        deadline,
        _OTHERS.get(parsed.others, ()),
        parsed.plan,
        checks=parsed.changes,
    )
    runs = [run for run in ledger.runs() if run.commit == commit and run.seed in seeds]
    print(summary(runs))
    return int(any(run.failure for run in runs))


def _run(
    seeds: list[int],
    ledger: Ledger,
    commit: str,
    deadline: float | None,
    kinds: tuple[TableKind, ...],
    plan: Plan | None,
    *,
    checks: bool,
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="property-") as folder,
        local_session(Path(folder), shuffle_partitions=2) as spark,
    ):
        for number, seed in enumerate(seeds, start=1):
            if deadline is not None and time.monotonic() > deadline:
                print(f"out of time before seed {seed}")
                return
            run = _run_seed(spark, seed, commit, kinds, plan, checks=checks)
            if run.failure and not _answers(spark):
                raise SystemExit(f"Spark ended while seed {seed} ran, which says nothing about it")
            ledger.add(run)
            if run.failure:
                print(run.failure, flush=True)
            if number % _PROGRESS == 0:
                print(f"{number} of {len(seeds)} seeds", flush=True)


def _answers(spark: SparkSession) -> bool:
    try:
        return spark.range(1).count() == 1
    except (Py4JError, PySparkException, OSError):
        return False


def _run_seed(
    spark: SparkSession,
    seed: int,
    commit: str,
    kinds: tuple[TableKind, ...],
    plan: Plan | None,
    *,
    checks: bool,
) -> Run:
    started = time.monotonic()
    failure = None
    with tempfile.TemporaryDirectory(prefix=f"seed-{seed}-") as folder:
        warehouse = Path(folder) / "warehouse"
        warehouse.mkdir()
        runner = Runner(spark, Warehouse(warehouse), kinds=kinds, plan=plan, checks=checks)
        try:
            runner.run_seed(seed)
        except AssertionError as error:
            failure = str(error)
    seconds = round(time.monotonic() - started, 2)
    return Run(seed, commit, seconds, runner.census.total, dict(runner.census.met), failure)


if __name__ == "__main__":
    sys.exit(main())
