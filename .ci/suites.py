"""Runs the test suites of tests/suites.toml and prints one summary at the end.

Usage: suites.py quick|full|turn|all [suite ...]

Each suite is one pytest process in each of its environments; suites that name the same process
share it, and its Spark session. At most three run at a time. All that a process starts carries its
mark in the environment, so that a hang or a crash ends that process only and leaves nothing behind.
A suite without a single test that ran is a failure. No test is run a second time because it failed.
Long lists of tests are taken by turns (tests/support/turns.py), and so are the files that `full`
leaves out (tests/turns.toml, with shares of other files): MERGE_TESTS_TURN says which part runs.
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
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / ".test"
ENVIRONMENTS = {"airflow": ROOT / ".venv", "spark": ROOT / ".venv-spark"}
_SELECTION = {
    "quick": ["-m", "not slow and not extended"],
    "full": ["-m", "not extended"],
    "turn": ["-m", "not extended"],
    "all": [],
}
WHOLE_LISTS = 6  # times as long may a suite take with everything that `make test` leaves out
# Whether each of the processes that run at a time prefers suites with Spark sessions.
LANES = (True, True, False)
# Settings of the user's shell that would change what the tests run against.
FOREIGN = ("SPARK_", "PYSPARK_", "HADOOP_", "AIRFLOW_", "PYTHON", "PYTEST_", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Suite:
    """A folder of tests in one environment."""

    name: str
    folder: str
    ignored: tuple[str, ...]
    environment: str
    sessions: bool
    run: str
    minutes: float
    process: str

    @property
    def label(self) -> str:
        return f"{self.name} [{self.environment}]"

    @property
    def modules(self) -> str:
        """What the names of its tests' classes start with."""
        return self.folder.replace("/", ".") + "."


@dataclass(frozen=True, slots=True)
class Process:
    """One run of pytest."""

    suites: list[Suite]

    @property
    def first(self) -> Suite:
        return self.suites[0]

    def work(self, output: Path) -> Path:
        """The folder of its results."""
        return output / f"{self.first.process}-{self.first.environment}"

    def report(self, output: Path) -> Path:
        return self.work(output) / "results.xml"


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
    ignored = {name: ignored_files(row["folder"], run, names) for name, row in table.items()}
    suites = [
        Suite(
            name,
            row["folder"],
            ignored[name],
            environment,
            row["sessions"],
            row["run"],
            times * row["minutes"],
            row.get("process", name),
        )
        for name, row in table.items()
        if (name in names if names else row["run"] in wanted)
        and len(ignored[name]) < len(test_files(row["folder"]))
        for environment in row["environments"][: 1 if run == "quick" else None]
    ]
    numbers = {name: row.get("parts", 1) if run == "turn" else 1 for name, row in table.items()}
    return [part for suite in suites for part in parts(suite, numbers[suite.name])]


def parts(suite: Suite, number: int) -> list[Suite]:
    """The suite in so many processes, which share its files; one alone uses one core of two."""
    files = sorted(set(test_files(suite.folder)) - set(suite.ignored))
    if not 1 < number <= len(files):
        return [suite]
    found = []
    for n in range(number):
        name, others = f"{suite.name}-{n + 1}", {*files} - {*files[n::number]}
        found.append(replace(suite, name=name, process=name, ignored=(*suite.ignored, *others)))
    return found


def test_files(folder: str) -> list[str]:
    """The files with tests below a folder."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("test_*.py"))


def ignored_files(folder: str, run: str, names: list[str]) -> tuple[str, ...]:
    """The files of a suite that are not run: of turns, of other shares; in a turn all others."""
    table = tomllib.loads((ROOT / "tests" / "turns.toml").read_text())
    turns, shares = table["turns"], table["shares"]
    if run == "turn":
        files = set(turns[turn() % len(turns)]["files"])
        return tuple(path for path in test_files(folder) if path not in files)
    if run == "full" and not names:
        others = [share for n, share in enumerate(shares) if n != turn() % len(shares)]
        files = {path for each in [*turns, *others] for path in each["files"]}
        return tuple(path for path in test_files(folder) if path in files)
    return ()


def turn() -> int:
    """The number of the part that runs."""
    return int(os.environ.get("MERGE_TESTS_TURN", "0"))


def processes(suites: list[Suite]) -> list[Process]:
    """The runs of pytest for these suites, in the order of their first ones."""
    found: dict[tuple[str, str], Process] = {}
    for suite in suites:
        found.setdefault((suite.process, suite.environment), Process([])).suites.append(suite)
    return list(found.values())


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
    variables["AIRFLOW__MERGE__MAKE_CLASS_ARCHIVE"] = "False"
    if suite.environment == "spark":
        variables["PYSPARK_PYTHON"] = str(bin_folder / "python")
        if (classes / "path").exists():
            archive = (classes / "path").read_text()
            variables["SPARK_SUBMIT_OPTS"] = f"-XX:SharedArchiveFile={archive}"
            variables["SPARK_CONF_DIR"] = str(classes / "conf")
    return variables


def run_all(suites: list[Suite], run: str) -> list[Outcome]:
    """Runs the processes side by side, in the order of the file: the longest first.

    Of three at a time two have Spark sessions, which load two cores well, and one has none, as long
    as there are both kinds; then the three share what is left.
    """
    waiting = processes(suites)
    order, lock = list(waiting), Lock()
    found: dict[int, list[Outcome]] = {}

    def lane(sessions: bool) -> None:
        while True:
            with lock:
                if not waiting:
                    return
                each = next((p for p in waiting if p.first.sessions is sessions), waiting[0])
                waiting.remove(each)
            found[order.index(each)] = run_quietly(each, run)

    with ThreadPoolExecutor(len(LANES)) as pool:
        list(pool.map(lane, LANES))
    return [outcome for _, outcomes in sorted(found.items()) for outcome in outcomes]


def run_quietly(process: Process, run: str) -> list[Outcome]:
    """Runs a process; its output is printed at its end."""
    with tempfile.TemporaryFile("w+") as log:
        outcomes = run_process(process, run, log=log)
        log.seek(0)
        print(log.read(), flush=True)
    return outcomes


def run_process(
    process: Process,
    run: str,
    output: Path = OUTPUT,
    options: Sequence[str] = (),
    log: IO[str] | None = None,
) -> list[Outcome]:
    """Runs its suites, with their output in `log` or on the terminal, their results in `output`.

    `options` are further ones of pytest.
    """
    selection = [*_SELECTION[run], *options]
    first, folders = process.first, [suite.folder for suite in process.suites]
    left_out = [f"--ignore={path}" for suite in process.suites for path in suite.ignored]
    labels = ", ".join(suite.label for suite in process.suites)
    print(f"\n==> {labels}: {' '.join([*folders, *selection])}", file=log, flush=True)
    work, report = process.work(output), process.report(output)
    work.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    python = str(ENVIRONMENTS[first.environment] / "bin" / "python")
    files = [f"--junit-xml={report}", "-o", f"cache_dir={work / 'cache'}"]
    started, mark = time.monotonic(), f"MERGE_TEST_RUN={uuid.uuid4().hex}"
    running = subprocess.Popen(
        [python, "-m", "pytest", *folders, *left_out, *files, *selection],
        cwd=ROOT,
        env=environment_variables(first, work) | dict([mark.split("=")]),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log and subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        code: int | None = running.wait(60 * sum(suite.minutes for suite in process.suites))
    except subprocess.TimeoutExpired:
        code = None
    finally:
        stop_all(running, mark)
    seconds = time.monotonic() - started
    return [outcome(suite, process, seconds, code, report) for suite in process.suites]


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


def outcome(
    suite: Suite, process: Process, seconds: float, code: int | None, report: Path
) -> Outcome:
    """Reads pytest's JUnit file; a missing one, a time limit or an empty run is a failure.

    A suite that shares its process has the seconds of its own tests.
    """
    passed = 0
    failed: list[str] = []
    skipped: list[tuple[str, str]] = []
    own = 0.0
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    for case in cases:
        class_name = case.get("classname") or case.get("name") or ""
        if not class_name.startswith(suite.modules):
            continue
        own += float(case.get("time", 0))
        skip = case.find("skipped")
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        if has_failed(case):
            failed.append(name)
        elif skip is not None:
            skipped.append((name, skip_reason(skip)))
        else:
            passed += 1
    if code is None:
        reason = f"stopped after {sum(each.minutes for each in process.suites):g} minutes"
    elif failed:
        reason = f"{len(failed)} failed"
    elif not report.exists():
        reason = f"pytest ended with {code} and wrote no results"
    elif not passed:
        reason = "every test was skipped" if skipped else "no test found"
    elif code == 0 or (code == 1 and any(map(has_failed, cases))):
        reason = ""  # a test of another suite failed, if any
    else:
        reason = f"pytest ended with {code}"
    return Outcome(
        suite, own if len(process.suites) > 1 else seconds, passed, failed, skipped, reason
    )


def has_failed(case: ElementTree.Element) -> bool:
    """Whether the test failed, or what it needs could not be made."""
    return case.find("failure") is not None or case.find("error") is not None


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
    return "\n".join([*lines, *(f"  {label} {name}: {reason}" for label, name, reason in skipped)])


def slowest(suites: list[Suite]) -> str:
    """The tests that took longest, with their seconds."""
    reports = [process.report(OUTPUT) for process in processes(suites)]
    cases = [
        (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
        for report in reports
        if report.exists()
        for case in ElementTree.parse(report).iter("testcase")
    ]
    lines = [f"{seconds:>8.1f}  {name}" for seconds, name in sorted(cases, reverse=True)[:25]]
    return "\n".join(["", f"the {len(lines)} slowest tests:", *lines])


def main(arguments: list[str]) -> int:
    """Runs the selected suites; see the module docstring."""
    if not arguments or arguments[0] not in _SELECTION:
        sys.exit(__doc__)
    run, *names = arguments
    suites, started = load(run, names), time.monotonic()
    if run == "all":
        os.environ["MERGE_TESTS"] = "all"
    else:
        print(f"Of what is taken by turns, the part of MERGE_TESTS_TURN={turn()}:", flush=True)
        for suite in suites if run == "turn" else []:
            run_here = sorted(set(test_files(suite.folder)) - set(suite.ignored))
            print(f"  {suite.label}: {' '.join(run_here)}", flush=True)
    outcomes = run_all(suites, run)
    print(summary(outcomes), flush=True)
    print(slowest(suites), flush=True)
    print(f"\n{time.monotonic() - started:.0f} seconds in all")
    return int(any(o.reason for o in outcomes) or not outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
