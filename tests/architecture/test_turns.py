"""Lists of tests that are taken by turns: in some run each of them is, and in each run some are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from math import gcd
from pathlib import Path

import pytest

from tests.architecture.layout import ROOT

TESTS = """
import pytest

pytestmark = pytest.mark.by_turns(3)

@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("row", range(4))
def test_cell(row, column):
    pass

@pytest.mark.by_turns(2, 1)
def test_second():
    pass

def test_alone():
    pass
"""
CONFTEST = "from tests.conftest import pytest_collection_modifyitems\n"
MARKS = "[pytest]\nmarkers = by_turns\n"
PARTS = re.compile(
    r"\b(?:by_turns\(|part\(|has_turn\([^,]+, |(?:\w*PARTS|TURNS)\b[^=\n]*= )(\d+)\b"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("test_it", TESTS), ("conftest", CONFTEST)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(MARKS)
    return tmp_path


def collected(folder: Path, **variables: str) -> set[str]:
    """The tests of a run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MERGE_TESTS")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    names = {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}
    assert names, done.stdout + done.stderr
    return names


def test_all_cells_have_a_turn_and_each_row_and_column_in_each_run(folder: Path) -> None:
    everything = collected(folder, MERGE_TESTS="all")
    runs = [collected(folder, MERGE_TESTS_TURN=str(turn)) for turn in range(4)]

    cells = {name for name in everything if "[" in name}
    assert len(cells) == 12
    assert set.union(*runs[:3]) == everything == {*cells, "test_second", "test_alone"}
    assert sum(len(run & cells) for run in runs[:3]) == len(cells), "each has one turn"
    assert runs[3] & cells == runs[0] & cells
    for run in runs:
        rows, columns = zip(*(name[10:-1].split("-") for name in run & cells), strict=True)
        assert (set(rows), set(columns)) == (set("0123"), set("012"))
    assert ["test_second" in run for run in runs] == [False, True] * 2
    assert all("test_alone" in run for run in runs)


def test_each_part_of_a_list_meets_each_turn_of_files() -> None:
    """A number of turns with a divisor in common with a number of parts keeps some apart."""
    turns = tomllib.loads((ROOT / "tests" / "turns.toml").read_text())["turns"]
    sources = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    parts = {int(each) for text in sources for each in PARTS.findall(text)}

    assert len(parts) > 10
    assert {each for each in parts if gcd(each, len(turns)) > 1} == set()
