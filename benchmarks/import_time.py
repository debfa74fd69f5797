"""What importing every module of the provider costs over Airflow's own.

Usage: python -m benchmarks.import_time, in the Airflow environment.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 5
PACKAGE = "airflow_provider_merge"
# What a DAG file with operators of any Spark provider has loaded anyway.
AIRFLOW = (
    "airflow.sdk",
    "airflow.providers.common.compat.sdk",
    "airflow.providers.apache.spark.hooks.spark_submit",
    "airflow.triggers.base",
)
_PROGRAM = """
import importlib, sys, time
for name in {before!r}:
    importlib.import_module(name)
started = time.perf_counter()
for name in {names!r}:
    importlib.import_module(name)
print(time.perf_counter() - started)
"""


def main() -> None:
    """Print the median over a few new processes."""
    root = Path(__file__).resolve().parents[1]
    paths = sorted((root / PACKAGE).rglob("*.py"))
    parts = [path.relative_to(root).with_suffix("").parts for path in paths]
    names = [".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts]
    program = _PROGRAM.format(before=AIRFLOW, names=names)
    with tempfile.TemporaryDirectory() as home:
        seconds = [_run(program, root, home) for _ in range(ROUNDS)]
    print(f"{len(names)} modules: {statistics.median(seconds):.3f} s, of {ROUNDS} rounds")


def _run(program: str, root: Path, home: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={"AIRFLOW_HOME": home, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
