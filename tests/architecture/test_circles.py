"""Imports have no circle: neither between files, nor between the parts of a package."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.layout import ROOT

FOLDERS = ("airflow_provider_merge", "spark_jobs", "dags_examples", "benchmarks", "tests")

_MOVE = "move what both need into a module that imports neither"


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


FILES = {
    _name(path): path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "__init__.py"
}
PACKAGES = sorted(
    {module.rsplit(".", n)[0] for module in FILES for n in range(1, module.count(".") + 1)}
)


def _imports(path: Path, *, types: bool = False) -> set[str]:
    """The project's modules that a file imports when it runs; ``types``: those for types too."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        is_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if is_types and not types:
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found & FILES.keys()


IMPORTS = {module: _imports(path) - {module} for module, path in FILES.items()}


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _between_parts(package: str) -> dict[str, set[str]]:
    """Which modules and packages directly below ``package`` import which others of them."""
    graph: dict[str, set[str]] = {}
    start = f"{package}." if package else ""
    for module, imported in IMPORTS.items():
        if not module.startswith(start):
            continue
        part = module.removeprefix(start).partition(".")[0]
        others = {
            each.removeprefix(start).partition(".")[0]
            for each in imported
            if each.startswith(start)
        }
        graph.setdefault(part, set()).update(others - {part})
    return graph


def test_no_circle_between_files() -> None:
    assert _circle(IMPORTS) == [], _MOVE


def test_no_circle_between_files_of_the_spark_side_by_types() -> None:
    files = {name: path for name, path in FILES.items() if name.startswith("spark_jobs.")}

    assert _circle({name: _imports(path, types=True) for name, path in files.items()}) == [], _MOVE


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_no_circle_between_the_parts_of_a_package(package: str) -> None:
    assert _circle(_between_parts(package)) == [], _MOVE


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "c", "b", "a"]
