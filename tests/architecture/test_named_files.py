"""The documentation names only files, packages and modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.layout import PACKAGES, ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = (*PACKAGES, "benchmarks", "dags_examples", "docs", "requirements", "tests")

_CORRECT = "write where it is now, and read whether the sentence is still true"


def _named(page: Path) -> list[str]:
    quoted = re.findall(r"`([\w./-]+)`", page.read_text())
    # An archive is made for each job.
    names = [name for name in quoted if not name.endswith(".zip")]
    return [name for name in names if re.split(r"[./]", name)[0] in FOLDERS]


def _exists(name: str) -> bool:
    path = ROOT / name if "/" in name else ROOT.joinpath(*name.split("."))
    return path.exists() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_file_exists(page: Path) -> None:
    assert [name for name in _named(page) if not _exists(name)] == [], _CORRECT


def test_every_room_of_a_merge_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    path = text.partition("## One MERGE, room by room")[2].partition("\n## ")[0]
    rooms = re.findall(r"\*\*`([\w.]+)`\*\*", path)
    assert "engine.analysis" in rooms
    missing = [
        room for room in rooms if not any(_exists(f"{package}.{room}") for package in PACKAGES)
    ]
    assert missing == [], _CORRECT


def test_every_module_of_both_walks_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("### The same MERGE in both formats")[2].partition("\n### ")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) > 10
    missing = [
        module
        for cells in rows
        for connector, cell in zip(("paimon", "iceberg"), cells, strict=True)
        for module in re.findall(r"`([\w.]+)`", cell)
        if not any(
            _exists(f"{package}.{module}")
            for package in (f"spark_jobs.connectors.{connector}", *PACKAGES)
        )
    ]
    assert missing == [], _CORRECT
