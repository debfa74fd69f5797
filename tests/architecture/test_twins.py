"""No longer function stands twice: on both sides of the provider, or in two rooms of connectors.

Functions are compared by the shape of their bodies: names, attributes and constants are ignored.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.layout import modules, source_of

LEAST_STATEMENTS = 10
SIDES = {
    "provider and job": ("airflow_provider_merge", "spark_jobs"),
    "connectors": ("spark_jobs.connectors.paimon", "spark_jobs.connectors.iceberg"),
    "one and all": ("spark_jobs.connectors.paimon", "spark_jobs.connectors.shared"),
    "other and all": ("spark_jobs.connectors.iceberg", "spark_jobs.connectors.shared"),
}


def functions(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the shape of each longer function of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            statements = sum(isinstance(each, ast.stmt) for each in ast.walk(node)) - 1
            if statements >= LEAST_STATEMENTS:
                yield f"{path}: {node.name}", shape(node.body)


def shape(body: Iterable[ast.stmt]) -> str:
    """The kinds of the nodes, in order, without docstrings."""
    return " ".join(_kinds(each) for each in body if not _is_text(each))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _kinds(node: ast.AST) -> str:
    inner = " ".join(_kinds(each) for each in ast.iter_child_nodes(node))
    return f"({type(node).__name__} {inner})" if inner else type(node).__name__


def twins(one: Iterable[Path], other: Iterable[Path]) -> list[tuple[list[str], list[str]]]:
    """The functions of each side that have a shape that both have."""
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, paths in enumerate((one, other)):
        for path in paths:
            for name, form in functions(path):
                found[form][side].append(name)
    return [names for names in found.values() if all(names)]


@pytest.mark.parametrize("sides", SIDES)
def test_no_function_stands_on_both_sides(sides: str) -> None:
    files = [[source_of(module) for module in modules(package)] for package in SIDES[sides]]

    assert all(files)
    assert twins(*files) == [], (
        "keep one of them: for both connectors in spark_jobs.connectors.shared, for provider and "
        "job in spark_jobs.contract or spark_jobs.formats"
    )


def test_a_function_under_other_names_is_found(tmp_path: Path) -> None:
    body = "".join(f"    {name} = sum(x for x in {name})\n" for name in "abcdefghij")
    texts = {"one": f"def first():\n{body}", "other": f"def second():\n{body.replace('x', 'y')}"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)

    (found,) = twins([tmp_path / "one.py"], [tmp_path / "other.py"])

    assert [names[0].rpartition(" ")[2] for names in found] == ["first", "second"]
