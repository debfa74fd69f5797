"""The code of a function that a source names: found beside the DAG, and never run here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from airflow_provider_merge.exceptions import invalid

_REMEDY = "Put the module beside the DAG file, where the worker imports it; it is one .py file."


def function_code(field: str, function: str) -> str:
    """The text of the module of ``module:function``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: there is no such module, or no text of it.
    """
    module = function.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise invalid(field, f"{module} cannot be imported: {error}", _REMEDY) from None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise invalid(field, f"there is no module {module}", _REMEDY)
    try:
        return Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(field, f"{spec.origin} cannot be read: {error}", _REMEDY) from None
