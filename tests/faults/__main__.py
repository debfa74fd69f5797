"""``make test-faults N=…``: faults until N have been run with this commit; it goes on where it was.

``COMPACT=1``: those of compactions, ``ICEBERG=1``: those of commits to Iceberg, or of compactions
there, each with a ledger of their own. ``DAYS=10``: the clocks of drivers are so many days behind,
and one that is ahead takes care of the table between their tries. Prints each fault that was not
survived, and the summary.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.compaction_matrix import WORKS as COMPACTIONS
from tests.faults.compaction_matrix import CompactionMatrix
from tests.faults.drivers import Drivers, running_drivers
from tests.faults.iceberg import WORKS as ICEBERG
from tests.faults.iceberg import IcebergMatrix
from tests.faults.iceberg_compactions import IcebergCompactionMatrix
from tests.faults.matrix import TABLE, WORKS, Matrix
from tests.judge.glue_server import versions_checked
from tests.judge.iceberg_server import iceberg_rest_catalog, iceberg_toolchain
from tests.judge.judge import read_with_java
from tests.support.stores import moto_store

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / ".faults"


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.check_output(command, cwd=_ROOT, text=True).strip()


def _earlier(ledger: Path, commit: str) -> list[dict[str, str]]:
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [run for run in map(json.loads, lines) if run["commit"] == commit]


def main() -> int:
    """Run faults, all of every work in turn; 1 when one was not survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--without-java", action="store_true")
    parser.add_argument("--compactions", action="store_true")
    parser.add_argument("--iceberg", action="store_true")
    parser.add_argument("--days", type=float, default=0, help="how wrong the clocks are")
    chosen = parser.parse_args()
    commit, started = _commit(), time.monotonic()
    kinds = ["iceberg"] * chosen.iceberg + ["compactions"] * chosen.compactions
    ledger = "-".join(kinds) or "runs"
    ledger_path = _FOLDER / f"{ledger}.jsonl"
    runs = _earlier(ledger_path, commit)
    _FOLDER.mkdir(exist_ok=True)
    with ExitStack() as stack:
        drivers = stack.enter_context(running_drivers(-chosen.days))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        every = [
            (matrix, fault)
            for matrix, works in _matrices(chosen, drivers, folder, stack)
            for work in works
            for fault in matrix.faults(work)
        ]
        rest = itertools.islice(itertools.cycle(every), len(runs), chosen.runs)
        with ledger_path.open("a") as written:
            for matrix, fault in rest:
                if chosen.minutes and time.monotonic() - started > 60 * chosen.minutes:
                    break
                try:
                    outcome = " then ".join(matrix.run(fault))
                except (AssertionError, ValueError) as error:
                    outcome = f"FAILED {error}"
                    sys.stdout.write(f"{fault}: {error}\n")
                run = {"commit": commit, "fault": str(fault), "outcome": outcome}
                runs.append(run)
                written.write(json.dumps(run) + "\n")
                written.flush()
    return _summary(runs)


def _matrices(
    chosen: argparse.Namespace, drivers: Drivers, folder: Path, stack: ExitStack
) -> list[tuple[Matrix | CompactionMatrix, Iterable[str]]]:
    if chosen.iceberg:
        rest = stack.enter_context(iceberg_rest_catalog(iceberg_toolchain()))
        glue = stack.enter_context(moto_store())
        stack.enter_context(versions_checked())
        servers = (None, rest, glue)
        if chosen.compactions:
            compacted = (IcebergCompactionMatrix.on(drivers, folder, each) for each in servers)
            return [(matrix, matrix.works) for matrix in compacted]
        return [(IcebergMatrix.on(drivers, folder, each), ICEBERG) for each in servers]

    def read(warehouse: Path) -> list[dict[str, object]]:
        return list(read_with_java(warehouse, TABLE))

    java = None if chosen.without_java else read
    if chosen.compactions:
        return [(CompactionMatrix(drivers, folder, java), COMPACTIONS)]
    care = stack.enter_context(running_drivers(chosen.days)) if chosen.days else None
    return [(Matrix(drivers, folder, java, care=care), WORKS)]


def _summary(runs: list[dict[str, str]]) -> int:
    kills = sum("killed" in run["fault"] for run in runs)
    sys.stdout.write(f"{len(runs)} faults, {kills} of them SIGKILL of a process\n")
    for outcome, count in Counter(run["outcome"] for run in runs).most_common():
        sys.stdout.write(f"{count:6} {outcome}\n")
    return int(any(run["outcome"].startswith("FAILED") for run in runs))


if __name__ == "__main__":
    sys.exit(main())
