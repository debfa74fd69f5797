"""Functions over Arrow batches reach executors in one way."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.layout import modules, source_of

_THE_WAY = "spark_jobs.spi.arrow_tasks"


@pytest.mark.parametrize("module", [m for m in modules("spark_jobs") if m != _THE_WAY])
def test_functions_are_mapped_by_map_in_arrow(module: str) -> None:
    tree = ast.parse(source_of(module).read_text())

    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert "mapInArrow" not in called, f"use map_in_arrow of {_THE_WAY}"
