"""Runs the test suites against other versions of Spark and Airflow than the locked ones.

Usage: compat.py run [leg ...] | compat.py lock [leg ...]

The legs are in requirements/compat/legs.toml. A leg is a lock in which a few packages are replaced:
its own file holds only these, with their hashes, so that it stays small and follows the lock.
`make test-compat` calls this; a leg whose Python is missing is named, and fails the run.
Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import suites

ROOT = suites.ROOT
REQUIREMENTS = ROOT / "requirements"
COMPAT = REQUIREMENTS / "compat"
WORK = suites.OUTPUT / "compat"
# Besides the group `test`: tests run statements that the provider's parser has read.
TEST_TOOLS = ("sqlglot",)


@dataclass(frozen=True, slots=True)
class Leg:
    """One environment that differs from a locked one."""

    name: str
    lock: str
    replace: tuple[str, ...]
    suites: tuple[str, ...]
    python: str | None = None
    warnings: tuple[str, ...] = ()
    readme: bool = False

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-compat-{self.name}"

    @property
    def difference(self) -> Path:
        return COMPAT / f"{self.name}.txt"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table at the end."""

    leg: str
    suite: str
    seconds: float
    result: str
    passed: bool
    skips: Mapping[str, int] = field(default_factory=dict)


def legs(names: list[str]) -> list[Leg]:
    """The legs in ``names``, or all."""
    table = tomllib.loads((COMPAT / "legs.toml").read_text())
    if unknown := sorted(set(names) - set(table)):
        sys.exit(f"no such leg: {', '.join(unknown)}; there are: {', '.join(table)}")
    return [
        Leg(name, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for name, row in table.items()
        if not names or name in names
    ]


def packages(text: str) -> dict[str, str]:
    """The lines of a requirements file by package; a package can have one entry per marker."""
    found: dict[str, str] = {}
    for entry in re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", text, re.MULTILINE):
        name = re.match(r"[\w.-]+", entry)
        assert name is not None, entry
        found[name[0].lower()] = found.get(name[0].lower(), "") + entry
    return found


def without_comments(entry: str) -> str:
    """A requirement with its hashes only."""
    return re.sub(r"\s+#.*", "", entry)


def write_difference(leg: Leg) -> None:
    """Compiles the leg with the lock's versions as preferences and keeps what differs."""
    WORK.mkdir(parents=True, exist_ok=True)
    lock = REQUIREMENTS / f"{leg.lock}.txt"
    compiled, replace = WORK / f"{leg.name}-compiled.txt", WORK / f"{leg.name}-replace.txt"
    shutil.copyfile(lock, compiled)
    replace.write_text("".join(f"{line}\n" for line in leg.replace))
    command = [".ci/uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    command += ["--python-version", "3.11", "--no-emit-index-url", "--no-header", "--no-annotate"]
    command += ["--group", f"pyproject.toml:{leg.lock}", "--constraints", str(replace)]
    command += ["--overrides", str(replace), "--output-file", str(compiled)]
    subprocess.run(command, cwd=ROOT, check=True)
    locked = {name: without_comments(e) for name, e in packages(lock.read_text()).items()}
    different = [e for n, e in packages(compiled.read_text()).items() if locked.get(n) != e]
    leg.difference.write_text("".join(different))
    print(f"{leg.difference.relative_to(ROOT)}: {len(different)} packages")


def make_environment(leg: Leg, variables: Mapping[str, str]) -> None:
    """Makes the leg's environment exactly the lock with the leg's packages instead of its own."""
    WORK.mkdir(parents=True, exist_ok=True)
    lock = packages((REQUIREMENTS / f"{leg.lock}.txt").read_text())
    whole = WORK / f"{leg.name}.txt"
    if leg.readme:
        write_readme_lock(leg, whole, variables)
    else:
        different = packages(leg.difference.read_text()) if leg.replace else {}
        whole.write_text("".join((lock | different).values()))
    command = [".ci/environment", leg.folder.name]
    command += ["--with-project"] if leg.lock == "airflow" else []
    command += [str(whole), *(java_lock() if leg.lock == "spark" else [])]
    subprocess.run(command, cwd=ROOT, env=dict(variables), check=True)


def write_readme_lock(leg: Leg, whole: Path, variables: Mapping[str, str]) -> None:
    """What README and the leg install for Spark, as the lock has it, and what runs tests."""
    text = (ROOT / "README.md").read_text()
    install = text.partition("/opt/merge-spark/bin/pip install ")[2].partition("`")[0]
    found = re.findall(r'"([^"]+)"', install) + re.findall(r'For Iceberg add `"([^"]+)"`', text)
    named = WORK / f"{leg.name}.in"
    named.write_text("".join(f"{each}\n" for each in (*found, *leg.replace, *TEST_TOOLS)))
    command = [".ci/uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    command += ["--python-version", "3.11", "--no-emit-index-url", "--no-header", "--no-annotate"]
    command += ["--constraints", str(REQUIREMENTS / f"{leg.lock}.txt"), str(named)]
    command += ["--group", "pyproject.toml:test", "--output-file", str(whole)]
    subprocess.run(command, cwd=ROOT, env=dict(variables), check=True)


def java_lock() -> list[str]:
    """The lock with a Java, where this machine has none."""
    done = subprocess.run([".ci/java"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def interpreter(leg: Leg) -> str | None:
    """The Python for a leg: the one of `make setup` unless the leg needs another version."""
    check = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"
    usual = os.environ["PYTHON"]
    for name in (usual, f"python{leg.python}"):
        if leg.python is None:
            return usual
        path = shutil.which(name)
        if path and not subprocess.run([path, "-c", check, leg.python], check=False).returncode:
            return path
    return None


def run_leg(leg: Leg) -> list[Row]:
    """One row per suite, or one that says why there is none."""
    python = interpreter(leg)
    if python is None:
        return [Row(leg.name, "-", 0, f"NOT RUN: Python {leg.python} is missing", passed=False)]
    started = time.monotonic()
    try:
        make_environment(leg, os.environ | {"PYTHON": python})
    except subprocess.CalledProcessError:
        seconds = time.monotonic() - started
        return [Row(leg.name, "-", seconds, "FAILED: environment not made", passed=False)]
    suites.ENVIRONMENTS[leg.lock] = leg.folder
    return [run_suite(leg, suite) for suite in selected(leg)]


def selected(leg: Leg) -> list[suites.Suite]:
    """The leg's suites that exist, in the environment that the leg replaces."""
    known = {suite.name for suite in suites.load("full", [])}
    names = [name for name in leg.suites if name in known]
    found = [s for s in suites.load("full", names) if s.environment == leg.lock]
    return [suite for suite in found if any((ROOT / suite.folder).rglob("test_*.py"))]


def run_suite(leg: Leg, suite: suites.Suite) -> Row:
    """One suite in the environment that is now the leg's."""
    options = [f"-W{each}" for each in leg.warnings]
    output = suites.OUTPUT / leg.folder.name
    (outcome,) = suites.run_process(suites.Process([suite]), "full", output=output, options=options)
    result = f"{outcome.passed} passed"
    result += f", {len(outcome.skipped)} skipped" if outcome.skipped else ""
    result += f"  FAILED: {outcome.reason}" if outcome.reason else ""
    skips = Counter(reason for _, reason in outcome.skipped)
    passed = not outcome.reason
    return Row(leg.name, suite.name, outcome.seconds, result, passed=passed, skips=skips)


def main(action: str, *names: str) -> int:
    """Does what the module docstring says."""
    if action == "lock":
        for leg in legs(list(names)):
            if leg.replace and not leg.readme:
                write_difference(leg)
        return 0
    locked = dict(suites.ENVIRONMENTS)
    rows = []
    for leg in legs(list(names)):
        suites.ENVIRONMENTS |= locked
        rows += run_leg(leg)
    print(f"\n{'leg':<22}{'suite':<14}{'seconds':>8}  result")
    for row in rows:
        print(f"{row.leg:<22}{row.suite:<14}{row.seconds:>8.1f}  {row.result}")
        for reason, number in sorted(row.skips.items()):
            print(f"{'':<46}skipped {number:>4}: {reason}")
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
