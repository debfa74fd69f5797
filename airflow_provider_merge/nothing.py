"""Parameters that are given and are nothing: always an error, never a default.

Nothing is None, empty text, an empty list or dict, and what a template does not know. A task that
was skipped returns it, and so do a key that is left out and a template without a value. The
default of a parameter is only for those that the author of the DAG file leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from airflow.sdk.definitions._internal.types import ArgNotSet
from jinja2 import Undefined

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.templates import is_template
from spark_jobs.errors import RequestError

_LEAVE_OUT: Final = (
    "Give it a value, or leave it out in the DAG file: only then its default applies."
)
NO_DEFAULT: Final = "Give it a value: it has no default."
# Of these an empty dict or list means just that.
_MAY_BE_EMPTY: Final = frozenset(
    {"conf", "options", "partition_keys", "primary_key", "sources", "table_options"}
)


def kind_of_nothing(name: str, value: Any) -> str | None:
    """What the parameter's value is if it is nothing, for the error; else None."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return None if value.strip() else "empty"
    if isinstance(value, Undefined | ArgNotSet):
        return "undefined"
    if isinstance(value, Mapping | list | tuple | set) and not value and name not in _MAY_BE_EMPTY:
        return "empty"
    return None


def is_nothing(place: str, kind: str, remedy: str = "") -> RequestError:
    """The error for a parameter that is given and is nothing."""
    return invalid(place, f"is {kind}", remedy or _LEAVE_OUT)


def settled(before: Any, after: Any, place: str) -> Any:
    """What a part of a parameter became by rendering, with lists for Airflow's lazy sequences.

    Raises:
        RequestError: REQUEST_INVALID: a template or a result inside it is nothing.
    """
    if is_template(before):
        if kind := kind_of_nothing(place.rpartition(".")[2], after):
            raise is_nothing(place, kind, "Check the task or the template that it comes from.")
        return listed(after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return {key: settled(before.get(key), after[key], f"{place}.{key}") for key in after}
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        pairs = enumerate(zip(before, after, strict=True))
        return [settled(*pair, f"{place}[{index}]") for index, pair in pairs]
    return after


def listed(value: Any) -> Any:
    """A list of a sequence that Airflow reads from XComs item by item; else the value itself."""
    if isinstance(value, str | bytes | list | tuple) or not isinstance(value, Sequence):
        return value
    from airflow.sdk.execution_time.lazy_sequence import LazyXComSequence

    return list(value[:] if isinstance(value, LazyXComSequence) else value)


def require_no_none(document: Any, place: str, required: Collection[str] = ()) -> None:
    """Check the fields of a plain dict that stands for a clause or a source.

    ``required`` are those without a default.

    Raises:
        RequestError: REQUEST_INVALID: one is None, or a required one is empty text.
    """
    if isinstance(document, Mapping):
        for name, value in document.items():
            if value is None or (name in required and isinstance(value, str) and not value.strip()):
                kind = "None" if value is None else "empty"
                remedy = NO_DEFAULT if name in required else ""
                raise is_nothing(f"{place}.{name}", kind, remedy)
