"""Runs the test suites of tests/suites.toml and prints one summary at the end.

Usage: suites.py quick|full|all [suite ...]

Each suite is one pytest process in each of its environments. At most three run at a time. All that
a suite starts carries its mark in the environment, so that a hang or a crash ends that suite only
and leaves nothing behind. A suite without a single test that ran is a failure. No test is run a
second time because it failed.
The exit code is 0 only if every suite passed. Standard library only.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / ".test"
ENVIRONMENTS = {"airflow": ROOT / ".venv", "spark": ROOT / ".venv-spark"}
_SELECTION = {
    "quick": ["-m", "not slow and not extended"],
    "full": ["-m", "not extended"],
    "all": [],
}
# So many times as long may a suite take with everything that `make test` leaves out.
WHOLE_LISTS = 6
_SLOWEST = 25
# Settings of the user's shell that would change what the tests run against.
FOREIGN = ("SPARK_", "PYSPARK_", "HADOOP_", "AIRFLOW_", "PYTHON", "PYTEST_", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of pytest: a folder of tests in one environment."""

    name: str
    folder: str
    environment: str
    sessions: bool
    run: str
    minutes: float

    @property
    def label(self) -> str:
        return f"{self.name} [{self.environment}]"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one suite did; `reason` is empty if it passed."""

    suite: Suite
    seconds: float
    passed: int
    failed: list[str]
    skipped: list[tuple[str, str]]
    reason: str


def load(run: str, names: list[str]) -> list[Suite]:
    """The suites that `run` selects, or exactly those in `names`."""
    table = tomllib.loads((ROOT / "tests" / "suites.toml").read_text())
    if unknown := sorted(set(names) - set(table)):
        sys.exit(f"no such suite: {', '.join(unknown)}; there are: {', '.join(table)}")
    wanted = ("quick",) if run == "quick" else ("quick", "full")
    times = WHOLE_LISTS if run == "all" else 1
    return [
        Suite(
            name,
            row["folder"],
            environment,
            row["sessions"],
            row["run"],
            times * row["minutes"],
        )
        for name, row in table.items()
        if (name in names if names else row["run"] in wanted)
        for environment in row["environments"][: 1 if run == "quick" else None]
    ]


def environment_variables(suite: Suite, work: Path) -> dict[str, str]:
    """The variables a suite runs with: the caller's without FOREIGN, and this project's."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    bin_folder = ENVIRONMENTS[suite.environment] / "bin"
    variables |= {
        "PATH": f"{bin_folder}{os.pathsep}{variables.get('PATH', os.defpath)}",
        "MERGE_SPARK_ENV": str(ENVIRONMENTS["spark"]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(work / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # A busy machine imports a DAG file slowly.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",
    }
    classes = ENVIRONMENTS["spark"] / ".class-archive"
    variables["AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER"] = str(classes)
    if suite.environment == "spark":
        variables["PYSPARK_PYTHON"] = str(bin_folder / "python")
        if (classes / "path").exists():
            archive = (classes / "path").read_text()
            variables["SPARK_SUBMIT_OPTS"] = f"-XX:SharedArchiveFile={archive}"
            variables["SPARK_CONF_DIR"] = str(classes / "conf")
    return variables


def run_all(suites: list[Suite], run: str) -> list[Outcome]:
    """Runs the suites side by side, in the order of the file: the longest first.

    Two Spark sessions at a time are as many as two cores bear. A suite without them fits beside
    two with, which start and wait for much of their time.
    """
    with ThreadPoolExecutor(2) as with_sessions, ThreadPoolExecutor(1) as without:
        pools = {True: with_sessions, False: without}
        running = [pools[each.sessions].submit(run_quietly, each, run) for each in suites]
        return [each.result() for each in running]


def run_quietly(suite: Suite, run: str) -> Outcome:
    """Runs a suite; its output is printed at its end."""
    with tempfile.TemporaryFile("w+") as log:
        outcome = run_suite(suite, run, log=log)
        log.seek(0)
        print(log.read(), flush=True)
    return outcome


def run_suite(
    suite: Suite,
    run: str,
    output: Path = OUTPUT,
    options: Sequence[str] = (),
    log: IO[str] | None = None,
) -> Outcome:
    """Runs one suite, with its output in `log` or on the terminal, its results in `output`.

    `options` are further ones of pytest.
    """
    selection = [*_SELECTION[run], *options]
    print(f"\n==> {suite.label}: {suite.folder} {' '.join(selection)}", file=log, flush=True)
    work = output / f"{suite.name}-{suite.environment}"
    work.mkdir(parents=True, exist_ok=True)
    report = work / "results.xml"
    report.unlink(missing_ok=True)
    python = str(ENVIRONMENTS[suite.environment] / "bin" / "python")
    files = [f"--junit-xml={report}", "-o", f"cache_dir={work / 'cache'}"]
    started = time.monotonic()
    mark = f"MERGE_TEST_RUN={uuid.uuid4().hex}"
    process = subprocess.Popen(
        [python, "-m", "pytest", suite.folder, *files, *selection],
        cwd=ROOT,
        env=environment_variables(suite, work) | dict([mark.split("=")]),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log and subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        code: int | None = process.wait(timeout=suite.minutes * 60)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        stop_all(process, mark)
    return outcome(suite, time.monotonic() - started, code, report)


def stop_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """Ends what a suite left running: a hung pytest, a JVM, a server in a session of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids = {*marked(mark), *([process.pid] if process.poll() is None else [])}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if pids:
            time.sleep(1)
    process.wait()


def marked(mark: str) -> list[int]:
    """The processes with `mark` in their environment; without /proc (macOS) none are found."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def outcome(suite: Suite, seconds: float, code: int | None, report: Path) -> Outcome:
    """Reads pytest's JUnit file; a missing one, a time limit or an empty run is a failure."""
    passed = 0
    failed: list[str] = []
    skipped: list[tuple[str, str]] = []
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        skip = case.find("skipped")
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif skip is not None:
            skipped.append((name, skip_reason(skip)))
        else:
            passed += 1
    if code is None:
        reason = f"stopped after {suite.minutes:g} minutes"
    elif code == 5:
        reason = "no test found"
    elif code != 0:
        reason = f"{len(failed)} failed" if failed else f"pytest ended with {code}"
    elif not report.exists():
        reason = "no results written"
    else:
        reason = "" if passed else "every test was skipped"
    return Outcome(suite, seconds, passed, failed, skipped, reason)


def skip_reason(skip: ElementTree.Element) -> str:
    """Why a test was skipped; for a whole module pytest has it only as (file, line, reason)."""
    message = skip.get("message") or "no reason given"
    if message == "collection skipped" and skip.text:
        try:
            message = str(ast.literal_eval(skip.text.strip())[-1])
        except (SyntaxError, ValueError):
            message = skip.text.strip()
    return message.removeprefix("Skipped: ")


def summary(outcomes: list[Outcome]) -> str:
    """The table of suites, then the skipped tests with their reasons."""
    lines = ["", f"{'suite':<28}{'seconds':>8}{'passed':>8}{'failed':>8}{'skipped':>9}"]
    for o in outcomes:
        counts = f"{o.seconds:>8.1f}{o.passed:>8}{len(o.failed):>8}{len(o.skipped):>9}"
        lines.append(f"{o.suite.label:<28}{counts}  {o.reason and 'FAILED: ' + o.reason}".rstrip())
    lines.append(f"{'total':<28}{sum(o.seconds for o in outcomes):>8.1f}")
    skipped = [(o.suite.label, *skip) for o in outcomes for skip in o.skipped]
    lines += ["", f"skipped tests: {len(skipped) or 'none'}"]
    lines += [f"  {label} {name}: {reason}" for label, name, reason in skipped]
    return "\n".join(lines)


def slowest(suites: list[Suite]) -> str:
    """The tests that took longest, with their seconds."""
    reports = [OUTPUT / f"{suite.name}-{suite.environment}" / "results.xml" for suite in suites]
    cases = [
        (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
        for report in reports
        if report.exists()
        for case in ElementTree.parse(report).iter("testcase")
    ]
    lines = [f"{seconds:>8.1f}  {name}" for seconds, name in sorted(cases, reverse=True)[:_SLOWEST]]
    return "\n".join(["", f"the {len(lines)} slowest tests:", *lines])


def main(arguments: list[str]) -> int:
    """Runs the selected suites; see the module docstring."""
    if not arguments or arguments[0] not in _SELECTION:
        sys.exit(__doc__)
    run, *names = arguments
    suites, started = load(run, names), time.monotonic()
    if run == "all":
        os.environ["MERGE_TESTS"] = "all"
    outcomes = run_all(suites, run)
    print(summary(outcomes), flush=True)
    print(slowest(suites), flush=True)
    print(f"\n{time.monotonic() - started:.0f} seconds in all")
    return int(any(o.reason for o in outcomes) or not outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
