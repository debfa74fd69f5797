"""Runs a test, a file or a folder, whole lists included, in each environment of its suite.

Usage: one_test.py TEST [option of pytest ...]

The output goes to the terminal; the exit code is the first one of pytest that is not 0.
"""

from __future__ import annotations

import os
import subprocess
import sys

from suites import ENVIRONMENTS, OUTPUT, ROOT, Suite, environment_variables, load


def suites_of(test: str) -> list[Suite]:
    """The suite that the test belongs to, once for each of its environments."""
    path = test.partition("::")[0].rstrip("/")
    found = [suite for suite in load("all", []) if f"{path}/".startswith(f"{suite.folder}/")]
    if not found or not (ROOT / path).exists():
        sys.exit(f"T={test}: there is no such test. Write a path below tests, with ::name.")
    longest = max(len(suite.folder) for suite in found)
    return [suite for suite in found if len(suite.folder) == longest]


def main(test: str = "", *options: str) -> int:
    """Runs it; see the module docstring."""
    os.environ["MERGE_TESTS"] = "all"
    codes = []
    for suite in suites_of(test):
        work = OUTPUT / f"one-{suite.environment}"
        work.mkdir(parents=True, exist_ok=True)
        command = [ENVIRONMENTS[suite.environment] / "bin" / "python", "-m", "pytest", test]
        ran = subprocess.run(
            [*command, *options], cwd=ROOT, env=environment_variables(suite, work), check=False
        )
        codes.append(ran.returncode)
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
