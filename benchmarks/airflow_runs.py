"""Runs of a DAG by ``airflow dags test`` and spark-submit, each with a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cpu import CpuTime

ROOT = Path(".bench").absolute()
PROJECT = Path.cwd()
SPARK_ENV = PROJECT / ".venv-spark"
CLASSES = ROOT / "classes"
_AIRFLOW = [sys.executable, "-m", "airflow"]


@dataclass(frozen=True)
class Side:
    """A checkout whose code runs, with or without an archive of Spark's classes."""

    name: str
    project: Path
    with_archive: bool


@dataclass(frozen=True)
class Run:
    """A run that ended well: when its first task started and its last ended (since 1970).

    ``xcoms``: what its tasks returned, by their ids.
    """

    home: Path
    started: float
    ended: float
    cpu: CpuTime
    xcoms: Mapping[str, Any]

    @property
    def warehouse(self) -> Path:
        """Where its tables are."""
        return self.home / "warehouse"


@contextmanager
def run_of(
    side: Side, dag: str, warehouse: Path, master: str = "local[2]", roots: tuple[int, ...] = ()
) -> Iterator[Run]:
    """Run the DAG ``bench`` of ``dag`` on a copy of ``warehouse``; its files go at the end.

    ``roots``: processes of a cluster that run its executors.
    """
    home = ROOT / f"run-{uuid.uuid4().hex}"
    (home / "dags").mkdir(parents=True)
    try:
        shutil.copytree(warehouse, home / "warehouse")
        (home / "dags" / "bench.py").write_text(dag)
        variables = _environment(side, home, master)
        for command in (("db", "migrate"), ("dags", "reserialize")):
            _airflow(variables, *command)
        with CpuTime(roots) as cpu:
            _airflow(variables, "dags", "test", "bench")
        yield Run(home, *_times(home), cpu, _xcoms(home))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def make_archive() -> None:
    """Make the archive of Spark's classes that sides with one use."""
    command = [sys.executable, "-m", "airflow_provider_merge", "class-archive"]
    command += ["--spark-env", str(SPARK_ENV), "--folder", str(CLASSES)]
    subprocess.run(command, check=True)


def checkout(commit: str) -> Path:
    """The project as of ``commit``, beside this one.

    This checkout may be installed in the environment, so the other one takes it off Python's path.
    """
    folder = ROOT / f"base-{commit}"
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(folder), commit], check=True)
    hide = f"import sys\n\nsys.path[:] = [each for each in sys.path if each != {str(PROJECT)!r}]\n"
    (folder / "sitecustomize.py").write_text(hide)
    return folder


def _environment(side: Side, home: Path, master: str) -> Mapping[str, str]:
    catalog = {"conn_type": "paimon", "extra": {"warehouse": str(home / "warehouse")}}
    host, _, port = master.rpartition(":") if master.startswith("spark:") else (master, "", "")
    spark = {"conn_type": "spark", "host": host, **({"port": int(port)} if port else {})}
    return {
        **os.environ,
        "PYTHONPATH": str(side.project),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__MERGE__SPARK_ENV": str(SPARK_ENV),
        "AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER": str(CLASSES) if side.with_archive else "",
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(catalog),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }


def _airflow(variables: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [*_AIRFLOW, *arguments],
        # Python puts the current folder on its path, where this checkout would hide another one.
        cwd=variables["AIRFLOW_HOME"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout[-5000:])


def _times(home: Path) -> tuple[float, float]:
    with sqlite3.connect(home / "airflow.db") as database:
        query = "SELECT state, start_date, end_date FROM task_instance"
        rows = database.execute(query).fetchall()
    assert {state for state, _, _ in rows} == {"success"}, rows
    times = [[datetime.fromisoformat(each).replace(tzinfo=UTC) for each in row[1:]] for row in rows]
    return min(each[0].timestamp() for each in times), max(each[1].timestamp() for each in times)


def _xcoms(home: Path) -> dict[str, Any]:
    with sqlite3.connect(home / "airflow.db") as database:
        query = "SELECT task_id, value FROM xcom WHERE key = 'return_value'"
        found = {}
        for task_id, value in database.execute(query):
            document = json.loads(value)
            found[task_id] = json.loads(document) if isinstance(document, str) else document
    return found
