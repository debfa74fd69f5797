"""The code of a function that a source names: found beside the DAG, and never run here."""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from airflow_provider_merge.exceptions import invalid

_REMEDY = "Put the module beside the DAG file, where the worker imports it; it is one .py file."


def function_code(field: str, function: str) -> str:
    """The text of the module of ``module:function``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: there is no such module, or no text of it.
    """
    module = function.partition(":")[0]
    spec = _found(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise invalid(field, f"there is no module {module}", _REMEDY)
    try:
        return Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(field, f"{spec.origin} cannot be read: {error}", _REMEDY) from None


def _found(module: str) -> ModuleSpec | None:
    """Where a module is, part by part: importing its packages would run their code."""
    folders: list[str] | None = None
    name, spec = "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or [])
    return spec
