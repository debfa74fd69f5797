"""Nothing that comes from a table or a request is ever executed or unpickled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.layout import PACKAGES, modules, source_of

MODULES = [module for package in PACKAGES for module in modules(package)]
# Modules that could run what they read.
FORBIDDEN_IMPORTS = ("pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "runpy", "code")
# Functions that run text, whatever they are called on; `compile` of `re` is another one.
FORBIDDEN_CALLS = ("eval", "exec", "compile", "__import__", "execfile", "loads_pickle", "system")
ALLOWED_CALLS = {"re.compile"}
# Who imports modules by name: from a list in their own source, but for the last one.
IMPORTERS = {
    "spark_jobs.connectors.registry": ["importlib.import_module(module_name)"],
    "airflow_provider_merge.job_package": ["importlib.util.find_spec(NAME)"],
    # The one source that is code: what a DAG's author names, and no template can.
    "spark_jobs.engine.source.python_rows": [
        "importlib.util.spec_from_file_location(name, file)",
        "importlib.util.module_from_spec(spec)",
    ],
}


def problems_of(tree: ast.AST) -> Iterator[str]:
    """What in a module could run data, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            if name.partition(".")[0] in FORBIDDEN_IMPORTS:
                yield f"line {node.lineno}: imports {name}"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.rpartition(".")[2] in FORBIDDEN_CALLS and called not in ALLOWED_CALLS:
                yield f"line {node.lineno}: calls {called}"
            if any(key.arg == "shell" for key in node.keywords):
                yield f"line {node.lineno}: starts a shell"


def imports_by_name(tree: ast.AST) -> list[str]:
    """Calls of importlib."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if ast.unparse(call.func).startswith("importlib")]


@pytest.mark.parametrize("module", MODULES)
def test_runs_no_data(module: str) -> None:
    tree = ast.parse(source_of(module).read_text())

    assert list(problems_of(tree)) == []
    expected = IMPORTERS.get(module, [])
    assert imports_by_name(tree) == expected, "write import statements, or add it to IMPORTERS"


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from yaml import load",
        "def f(x):\n    return eval(x)",
        "builtins.exec(text)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
    ],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert list(problems_of(ast.parse(source))) != []


def test_the_registry_loads_only_modules_of_its_own_list() -> None:
    tree = ast.parse(source_of("spark_jobs.connectors.registry").read_text())
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_CONNECTORS"
    )

    entries = ast.literal_eval(table)
    assert all(module.startswith("spark_jobs.connectors.") for module in entries.values())
