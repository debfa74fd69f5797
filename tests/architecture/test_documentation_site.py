"""The documentation as a site: every public class and function is in its API reference.

`make docs` builds the site and refuses broken links and anchors.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import runpy

import pytest

import airflow_provider_merge
from tests.architecture.layout import ROOT

pytest.importorskip("airflow", reason="operators are imported in the Airflow environment")
PAGES = runpy.run_path(str(ROOT / ".ci" / "docs_pages.py"))
# Airflow, or this provider, makes their instances; no DAG file names them.
NOT_OF_DAG_FILES = ("links", "plugin", "ui", "submit", "metadata", "storage", "lineage")
# What other classes are made of.
BASES = {
    "airflow_provider_merge.hooks.connection_hook.ConnectionHook",
    "airflow_provider_merge.parameters.ParameterOperator",
}

_ADD = "name its module in get_provider_info, or in MORE_MODULES of .ci/docs_pages.py"


def _public_classes() -> list[str]:
    """Operators, sensors, hooks and triggers: classes that Airflow's own ones are bases of."""
    bases = ("BaseOperator", "BaseHook", "BaseTrigger")
    found = []
    for info in pkgutil.walk_packages(airflow_provider_merge.__path__, "airflow_provider_merge."):
        parts = info.name.split(".")[1:]
        if info.ispkg or parts[0] in NOT_OF_DAG_FILES or any(p.startswith("_") for p in parts):
            continue
        module = importlib.import_module(info.name)
        found += [
            f"{info.name}.{name}"
            for name, each in vars(module).items()
            if inspect.isclass(each)
            and each.__module__ == info.name
            and not name.startswith("_")
            and any(base.__name__ in bases for base in each.__mro__)
        ]
    return sorted(found)


def _documented() -> set[str]:
    return {name for _, _, names in PAGES["reference"]() for name in names}


def test_every_public_class_is_in_the_reference() -> None:
    classes = _public_classes()
    assert len(classes) > 25
    assert sorted(set(classes) - _documented() - BASES) == [], _ADD


@pytest.mark.parametrize("module", ["sources", "clauses", "statement_list", "table_changes"])
def test_every_public_function_of_dag_files_is_in_the_reference(module: str) -> None:
    name = f"airflow_provider_merge.operators.{module}"
    functions = {
        f"{name}.{each}"
        for each, value in vars(importlib.import_module(name)).items()
        if inspect.isfunction(value) and value.__module__ == name and not each.startswith("_")
    }
    assert functions
    assert sorted(functions - _documented()) == [], _ADD
