"""What checks of rows cost: the same mixed merge with and without them, alternating.

``python -m benchmarks.changes [--rows N] [--changes N] [--runs N]``. For each way of checking,
prints the seconds of each run and the ratio of the medians to that of the merge without checks,
then the same of the CPU seconds of the driver, its JVM and its Python workers, which a busy machine
changes less, and the medians of the phases.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
    "all columns": "SELECT * FROM changes WHERE old.quantity < -1e9",
}


@dataclass(frozen=True, slots=True)
class Merged:
    """What one merge took: seconds, those of the CPU, and those of its phases."""

    seconds: float
    cpu: float
    phases: Mapping[str, float]


def merge(bench: Bench, sql: str | None) -> Merged:
    """One merge into a fresh copy of the table."""
    warehouse = copy_of(bench.master)
    request = JobRequest(
        operation_id=uuid.uuid4().hex,
        target=TABLE,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=MergeSpec("s", "t.id = s.id", STATEMENTS["mixed"], "t", "s"),
        sources=(FileSource("s", str(bench.source), "parquet"),),
        guards=Guards(checks=(RowCheck("check", sql),)) if sql else None,
    )
    started, used = time.perf_counter(), _used()
    result = run(request, bench.spark)
    seconds, cpu = time.perf_counter() - started, _used() - used
    if result.error is not None:
        raise SystemExit(f"{result.error.code}: {result.error.message}")
    shutil.rmtree(warehouse)
    return Merged(seconds, cpu, result.metrics.seconds)


def _used() -> float:
    """CPU seconds of this process and of all below it, also of those that have ended (Linux)."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Compare all ways."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parsed = parser.parse_args()
    bench = Bench(session(), parsed.rows, parsed.changes, False, "parquet")
    bench.prepare()
    seen: dict[str, list[Merged]] = {name: [] for name in WAYS}
    for number in range(parsed.runs + 1):
        for name, sql in WAYS.items():
            merged = merge(bench, sql)
            if number:  # the first of each is slower than any other
                seen[name].append(merged)
    for label, value in (("seconds", _seconds), ("CPU seconds", _cpu)):
        base = statistics.median(map(value, seen["no check"]))
        for name, runs in seen.items():
            times = [value(each) for each in runs]
            texts = " ".join(f"{each:.2f}" for each in times)
            print(
                f"{label:<12}{name:<16}{texts}   {statistics.median(times) / base:.2f}", flush=True
            )
    for name, runs in seen.items():
        phases = {phase: [each.phases.get(phase, 0.0) for each in runs] for phase in runs[0].phases}
        texts = " ".join(f"{phase} {statistics.median(each):.2f}" for phase, each in phases.items())
        print(f"{name:<16}{texts}", flush=True)


def _seconds(merged: Merged) -> float:
    return merged.seconds


def _cpu(merged: Merged) -> float:
    return merged.cpu


if __name__ == "__main__":
    main()
