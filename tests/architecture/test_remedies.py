"""Every error that is made says what the reader can do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from spark_jobs import errors
from tests.architecture.layout import PACKAGES, modules, source_of

MODULES = [module for package in PACKAGES for module in modules(package)]
# The code goes without saying in NotSupportedError; the remedy is the last argument of all.
ARGUMENTS = {
    name: 2 if each is errors.NotSupportedError else 3
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.JobError)
} | {"error_of": 3}


def without_remedy(tree: ast.AST) -> Iterator[str]:
    """The calls that make an error without a remedy, with their lines."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        given = [*node.args, *(key.value for key in node.keywords)]
        if name in ARGUMENTS and (
            len(given) < ARGUMENTS[name] or ast.unparse(given[-1]) in ("''", "None")
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("module", MODULES)
def test_every_error_has_a_remedy(module: str) -> None:
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))

    assert list(without_remedy(tree)) == [], "the last argument tells the reader what to do"


@pytest.mark.parametrize(
    "source",
    [
        "NotSupportedError('no ORC')",
        "errors.CatalogError(code, 'there is no table')",
        "DataError(code, 'NULL', '')",
    ],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert list(without_remedy(ast.parse(source))) != []
