"""Who may import whom, read from the source; and what stands alone really imports alone."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.importing import failures_of_importing
from tests.architecture.layout import (
    ALLOWED_IMPORTS,
    PACKAGES,
    STDLIB_ONLY,
    is_stdlib,
    modules,
    source_of,
)

ALL_MODULES = [m for package in PACKAGES for m in modules(package)]


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        # "from spark_jobs import engine" imports spark_jobs.engine.
        submodules = [f"{node.module}.{alias.name}" for alias in node.names]
        return [m if m in ALL_MODULES else node.module for m in submodules]
    return []


def imports_of(module: str) -> list[tuple[int, str]]:
    """Line and name of every import in a module, those for type checkers only left out.

    The provider's are all there: not even for its types does it need the Spark side.
    """
    tree = ast.parse(source_of(module).read_text())
    typing_only: set[ast.AST] = set()
    if not is_within(module, "airflow_provider_merge"):
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                typing_only.update(inner for part in node.body for inner in ast.walk(part))
    return [
        (node.lineno, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in typing_only
        for name in imported_names(node)
    ]


@pytest.mark.parametrize("module", ALL_MODULES)
def test_imports_only_what_the_architecture_allows(module: str) -> None:
    imports = imports_of(module)
    parts = [part for part in ALLOWED_IMPORTS if is_within(module, part)]
    allowed = ALLOWED_IMPORTS[max(parts, key=len)] if parts else ()

    forbidden = [
        f"{source_of(module).name}:{line} imports {name}"
        for line, name in imports
        if not is_stdlib(name) and not any(is_within(name, part) for part in allowed)
    ]

    assert not forbidden, (
        f"{forbidden}: put the code into a part that may import it, or change ALLOWED_IMPORTS of "
        'tests/architecture/layout.py and "Parts and allowed imports" of docs/architecture.md'
    )


@pytest.mark.parametrize("part", STDLIB_ONLY)
def test_imports_with_nothing_but_the_standard_library(part: str) -> None:
    found = modules(part)
    assert found

    assert failures_of_importing(found, allowed=["spark_jobs"]) == {}


def test_the_sql_parser_imports_without_airflow_and_spark() -> None:
    found = modules("airflow_provider_merge.sql")
    assert found

    allowed = ["airflow_provider_merge", "spark_jobs", "sqlglot"]
    assert failures_of_importing(found, allowed=allowed) == {}
