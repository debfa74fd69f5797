"""A small merge from a cold start: from ``execute()`` to the snapshot, wall and CPU.

``.venv/bin/python -m benchmarks.cold [--base COMMIT] [--cluster]`` (the Airflow environment). 1,000
source rows into one file of 500,000, by ``airflow dags test`` and spark-submit: with an archive of
Spark's classes, without one, and with ``--base`` as the project was at that commit, in turns. The
phases are those that the result names; the rest of the wall time is ``other``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.airflow_runs import (
    PROJECT,
    ROOT,
    SPARK_ENV,
    Run,
    Side,
    checkout,
    make_archive,
    run_of,
)

DAG = """
import os
import time
from pathlib import Path
from airflow.sdk import DAG
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source

def note_the_time(context):
    Path(os.environ["AIRFLOW_HOME"], "executed").write_text(str(time.time()))

with DAG("bench", schedule=None):
    MergeIntoOperator(
        task_id="merge",
        pre_execute=note_the_time,
        target="bench.lineitem",
        source=sql_source(
            "SELECT * FROM changes ORDER BY id % 997, id LIMIT 1000",
            sources={{"changes": file_source("{changes}", "parquet")}},
        ),
        on="t.id = s.id",
        when=[
            when_matched("s.del").delete(),
            when_matched().update({{"price": "s.price", "comment": "s.comment"}}),
            when_not_matched().insert({{"id": "s.id", "price": "s.price", "comment": "s.comment"}}),
        ],
    )
"""
_PREPARE = """
from benchmarks.merge import Bench
Bench(None, {rows}, {changes}, False, "parquet").prepare()
"""
_AFTER_THE_SNAPSHOT = ("clean", "end")


@dataclass(frozen=True)
class Cold:
    """One merge: seconds until the snapshot, CPU seconds until the end, seconds by phase."""

    wall: float
    cpu: float
    kinds: Mapping[str, float]
    phases: Mapping[str, float]

    @property
    def other(self) -> float:
        """Wall time until the snapshot that no phase names."""
        named = sum(v for name, v in self.phases.items() if name not in _AFTER_THE_SNAPSHOT)
        return self.wall - named


def cold(run: Run) -> Cold:
    """What the run's result, snapshot and processes tell."""
    phases = run.xcoms["merge"]["metrics"]["seconds"]
    snapshots = [json.loads(path.read_text()) for path in run.warehouse.rglob("snapshot-*")]
    newest = max(snapshots, key=lambda each: int(each["id"]))
    executed = float((run.home / "executed").read_text())
    wall = newest["timeMillis"] / 1000 - executed
    return Cold(wall, run.cpu.seconds, run.cpu.by_kind(), phases)


@contextmanager
def standalone() -> Iterator[tuple[str, int]]:
    """A master and a worker of two cores on this machine: the address, and the worker's pid."""
    (home,) = SPARK_ENV.glob("lib/python3.*/site-packages/pyspark")
    folder = ROOT / "standalone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variables = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
        with (folder / "log").open("ab") as log:
            return subprocess.Popen([*command], env=variables, stdout=log, stderr=log)

    local = ("--host", "127.0.0.1", "--webui-port", "0")
    processes = [start("master.Master", *local, "--port", "0")]
    try:
        address = _said(folder / "log", r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "2", "--memory", "2g", "--work-dir", str(folder))
        processes.append(start("worker.Worker", *local, *size, address))
        _said(folder / "log", r"Successfully (registered) with master")
        yield address, processes[1].pid
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text()) if log.exists() else None
        if found:
            return found[1]
        time.sleep(0.1)
    raise SystemExit(log.read_text())


def measure(sides: list[Side], runs: int, rows: int, changes: int, *, cluster: bool) -> None:
    """Run the sides in turns and print their medians."""
    dag = DAG.format(changes=ROOT / f"changes-{rows}-{changes}.parquet")
    found: dict[str, list[Cold]] = {side.name: [] for side in sides}
    with standalone() if cluster else _local() as (master, *roots):
        for _ in range(runs):
            for side in sides:
                with run_of(side, dag, ROOT / f"master-{rows}", master, tuple(roots)) as run:
                    found[side.name].append(cold(run))
    for name, each in found.items():
        _show(name, each)
    _ratios(found)


@contextmanager
def _local() -> Iterator[tuple[str]]:
    yield ("local[2]",)


def _show(name: str, runs: list[Cold]) -> None:
    best = sorted(runs, key=lambda run: run.wall)[len(runs) // 2]
    print(f"{name}: {best.wall:.1f} s until the snapshot, {best.cpu:.1f} s of CPU")
    phases = " | ".join(f"{phase} {value:.2f}" for phase, value in best.phases.items())
    print(f"  {phases} | other {best.other:.2f}")
    print("  CPU: " + " | ".join(f"{kind} {value:.1f}" for kind, value in best.kinds.items()))


def _ratios(found: Mapping[str, list[Cold]]) -> None:
    first, *others = found
    for name in others:
        wall, cpu = (
            statistics.median(getattr(each, field) for each in found[name])
            / statistics.median(getattr(each, field) for each in found[first])
            for field in ("wall", "cpu")
        )
        print(f"{first} beside {name}: {wall:.2f} times as fast, {100 / cpu:.0f} % of its CPU")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--changes", type=int, default=60_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--base", help="a commit to measure beside this one")
    parser.add_argument("--cluster", action="store_true", help="a standalone cluster, not local[2]")
    parsed = parser.parse_args()
    prepare = _PREPARE.format(rows=parsed.rows, changes=parsed.changes)
    subprocess.run([SPARK_ENV / "bin" / "python", "-c", prepare], check=True)
    make_archive()
    sides = [Side("here", PROJECT, True), Side("without an archive", PROJECT, False)]
    if parsed.base:
        sides.append(Side(f"at {parsed.base}", checkout(parsed.base), False))
    measure(sides, parsed.runs, parsed.rows, parsed.changes, cluster=parsed.cluster)


if __name__ == "__main__":
    main()
