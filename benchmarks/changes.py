"""What checks of rows cost: the same mixed merge with and without them, alternating.

``python -m benchmarks.changes [--rows N] [--changes N] [--runs N]``. For each way of checking,
prints the seconds of each run and the ratio of the medians to that of the merge without checks.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
import uuid

from benchmarks.comparison import copy_of, session
from benchmarks.merge import STATEMENTS, TABLE, Bench
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.run import run

WAYS = {
    "no check": None,
    "old beside new": "SELECT old.id FROM changes WHERE new.price < old.price - 1e9",
    "new rows": "SELECT id FROM new_rows WHERE id IS NULL",
    "all columns": "SELECT * FROM changes WHERE operation IS NULL",
}


def merge(bench: Bench, sql: str | None) -> float:
    """Seconds of one merge into a fresh copy of the table."""
    warehouse = copy_of(bench.master)
    request = JobRequest(
        operation_id=uuid.uuid4().hex,
        target=TABLE,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=MergeSpec("s", "t.id = s.id", STATEMENTS["mixed"], "t", "s"),
        sources=(FileSource("s", str(bench.source), "parquet"),),
        guards=Guards(checks=(RowCheck("check", sql),)) if sql else None,
    )
    started = time.perf_counter()
    result = run(request, bench.spark)
    seconds = time.perf_counter() - started
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    shutil.rmtree(warehouse)
    return seconds


def main() -> None:
    """Compare all ways."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, parsed.changes, False, "parquet")
    bench.prepare()
    seen: dict[str, list[float]] = {name: [] for name in WAYS}
    for number in range(parsed.runs + 1):
        for name, sql in WAYS.items():
            seconds = merge(bench, sql)
            if number:  # the first of each is slower than any other
                seen[name].append(seconds)
    base = statistics.median(seen["no check"])
    for name, each in seen.items():
        times = " ".join(f"{seconds:.2f}" for seconds in each)
        print(f"{name:<16}{times}   {statistics.median(each) / base:.2f}", flush=True)


if __name__ == "__main__":
    main()
