"""``dry_run="plan"`` beside the statement itself, and beside a dry run that does all the work.

``python -m benchmarks.plan_only [--rows N] [--changes N] [--runs N]``. Prints the seconds of each,
their medians and ratios, and whether what the statement did is within the bounds of its plan.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import uuid
from pathlib import Path

from benchmarks.comparison import copy_of, session
from benchmarks.merge import STATEMENTS, TABLE, Bench
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.run import run

KINDS = ("plan", "dry run", "merge")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=120_000)
    parser.add_argument("--runs", type=int, default=3)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, parsed.changes, vectors=False, file_format="parquet")
    bench.prepare()
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(parsed.runs + 1):
        warehouse, results = copy_of(bench.master), {}
        for kind in KINDS:
            taken, results[kind] = _timed(bench, warehouse, kind)
            # The first round warms up.
            seconds[kind] += [taken] if number else []
            print(f"run {number}: {kind} {taken:.2f} s {dict(results[kind].metrics.seconds)}")
        shutil.rmtree(warehouse)
        _require_bounds(results["plan"], results["merge"])
    medians = {kind: statistics.median(found) for kind, found in seconds.items()}
    told = ", ".join(f"{kind} {found:.2f} s" for kind, found in medians.items())
    ratio = medians["merge"] / medians["plan"]
    print(f"{parsed.rows:,} rows: {told}; merge / plan {ratio:.1f}, within the bounds: yes")


def _timed(bench: Bench, warehouse: Path, kind: str) -> tuple[float, JobResult]:
    request = JobRequest(
        operation_id=uuid.uuid4().hex,
        target=TABLE,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=MergeSpec("s", "t.id = s.id", STATEMENTS["mixed"], "t", "s"),
        sources=(FileSource("s", str(bench.source), "parquet"),),
        dry_run=kind != "merge",
        plan_only=kind == "plan",
    )
    started = time.perf_counter()
    result = run(request, bench.spark)
    seconds = time.perf_counter() - started
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    return seconds, result


def _require_bounds(planned: JobResult, done: JobResult) -> None:
    plan, metrics = planned.plan, done.metrics
    if plan is None or any(
        getattr(metrics, name) > getattr(plan, name)
        for name in ("inserted", "updated", "deleted", "files_rewritten")
    ):
        raise SystemExit(f"the plan {plan} does not bound {metrics}")


if __name__ == "__main__":
    main()
