"""No test is left out of `make test` by accident."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.layout import ROOT
from tests.architecture.test_turns import PARTS

SUITES = tomllib.loads((ROOT / "tests" / "suites.toml").read_text())
_TABLE = tomllib.loads((ROOT / "tests" / "turns.toml").read_text())
TURNS, SHARES = _TABLE["turns"], _TABLE["shares"]


def test_every_test_file_belongs_to_exactly_one_suite() -> None:
    folders = [ROOT / row["folder"] for row in SUITES.values()]
    files = sorted((ROOT / "tests").rglob("test_*.py"))

    owners = {f: [d for d in folders if d in f.parents] for f in files}

    assert {str(f.relative_to(ROOT)) for f, found in owners.items() if len(found) != 1} == set(), (
        "name the folder of each in exactly one suite of tests/suites.toml"
    )


def test_every_suite_says_where_and_when_it_runs() -> None:
    for name, row in SUITES.items():
        required = {"folder", "environments", "sessions", "run", "minutes"}
        assert required <= set(row) <= required | {"process", "parts"}, name
        assert set(row["environments"]) <= {"airflow", "spark"}, name
        assert row["environments"], name
        assert row["run"] in {"quick", "full"}, name


def test_suites_of_one_process_are_alike() -> None:
    for row in SUITES.values():
        if "process" in row:
            alike = [each for each in SUITES.values() if each.get("process") == row["process"]]
            assert {each["sessions"] for each in alike} == {row["sessions"]}
            assert all(each["environments"] == row["environments"] for each in alike)


def test_files_of_turns_and_shares_are_there_and_in_one_each() -> None:
    files = [path for each in [*TURNS, *SHARES] for path in each["files"]]

    assert [path for path in files if not (ROOT / path).is_file()] == []
    assert sorted(files) == sorted(set(files))


def test_a_turn_runs_each_of_its_files_once_in_an_environment() -> None:
    run = f"""
import json, os, suites
for number in range({len(TURNS)}):
    os.environ["MERGE_TESTS_TURN"] = str(number)
    parts = suites.load("turn", [])
    taken = [[path, part.environment] for part in parts for path in suites.test_files(part.folder)
             if path not in part.ignored]
    print(json.dumps(taken))
"""
    printed = subprocess.check_output([sys.executable, "-c", run], cwd=ROOT / ".ci", text=True)

    environments = {f"{row['folder']}/": row["environments"] for row in SUITES.values()}
    for turn, line in zip(TURNS, printed.splitlines(), strict=True):
        expected = [
            [path, environment]
            for path in turn["files"]
            for folder, found in environments.items()
            if path.startswith(folder)
            for environment in found
        ]
        assert sorted(json.loads(line)) == sorted(expected)


def test_every_turn_meets_every_share() -> None:
    assert math.gcd(len(TURNS), len(SHARES)) == 1


def test_each_part_of_a_list_meets_each_share() -> None:
    # Both go by one number: with a divisor in common, some cases would never run.
    files = [path for share in SHARES for path in share["files"]]
    parts = {path: [int(n) for n in PARTS.findall((ROOT / path).read_text())] for path in files}

    assert any(parts.values())
    apart = {path for path, found in parts.items() if math.gcd(len(SHARES), math.prod(found)) > 1}
    assert apart == set()


def test_no_suite_is_left_to_turns_alone() -> None:
    files = {ROOT / path for turn in TURNS for path in turn["files"]}
    for name, row in SUITES.items():
        left = set((ROOT / row["folder"]).rglob("test_*.py")) - files
        assert left, name


def marks_of(marks: Iterable[ast.expr]) -> dict[str, list[int]]:
    """The names of marks, with their numbers."""
    found = {}
    for each in marks:
        call = each if isinstance(each, ast.Call) else None
        name = call.func if call else each
        if isinstance(name, ast.Attribute):
            numbers = (
                [one.value for one in call.args if isinstance(one, ast.Constant)] if call else []
            )
            found[name.attr] = [one for one in numbers if isinstance(one, int)]
    return found


def marks_of_module(tree: ast.Module) -> dict[str, list[int]]:
    """The same for those of all tests of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            return marks_of(getattr(node.value, "elts", [node.value]))
    return {}


@cache
def marks_of_tests(path: Path) -> list[dict[str, list[int]]]:
    """Of each test of a file its marks, those of the module included."""
    tree = ast.parse(path.read_text())
    return [
        marks_of(node.decorator_list) | marks_of_module(tree)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@pytest.mark.parametrize("number", range(len(SHARES)))
def test_every_suite_of_a_run_has_a_test_in_it(number: int) -> None:
    others = SHARES[:number] + SHARES[number + 1 :]
    files = {ROOT / path for each in [*TURNS, *others] for path in each["files"]}
    for name, row in SUITES.items():
        left = set((ROOT / row["folder"]).rglob("test_*.py")) - files
        tests = [marks for path in left for marks in marks_of_tests(path)]
        turns = [each.get("by_turns", []) for each in tests if "extended" not in each]
        numbered = {tuple(each) for each in turns if len(each) == 2}
        parts = {each for each, _ in numbered}
        covered = any(all((each, n) in numbered for n in range(each)) for each in parts)
        problem = f"{name}: put {sorted(map(str, left))} into a share with other files of it"
        assert not left or covered or any(len(each) < 2 for each in turns), problem


@pytest.mark.parametrize(
    ("test", "suite"),
    [
        ("tests/connectors/iceberg/test_manifest_merging.py", "connectors"),
        ("tests/engine", "engine"),
        ("tests/sql/test_errors.py::test_name", "sql"),
    ],
)
def test_one_test_runs_in_the_environments_of_its_suite(test: str, suite: str) -> None:
    run = "import json, one_test, sys; found = one_test.suites_of(sys.argv[1]); "
    run += "print(json.dumps([[each.name, each.environment] for each in found]))"
    printed = subprocess.check_output([sys.executable, "-c", run, test], cwd=ROOT / ".ci")

    expected = [[suite, environment] for environment in SUITES[suite]["environments"]]
    assert json.loads(printed) == expected
