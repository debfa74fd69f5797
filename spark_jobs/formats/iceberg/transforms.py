"""Which transforms of partition specs and sort orders are known here, by the names of types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

VOID: Final = "void"
_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")
_SPARK: Final = (
    *("boolean", "int", "long", "float", "double", "string", "binary"),
    *("date", "timestamp", "timestamptz"),
)
_NESTED: Final = ("struct", "list", "map")
_TRUNCATED: Final = ("int", "long", "string", "binary")
_TIMES: Final = ("timestamp", "timestamptz")
_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "year": ("date", *_TIMES),
    "month": ("date", *_TIMES),
    "day": ("date", *_TIMES),
    "hour": _TIMES,
}


def named(transform: str) -> tuple[str, int | None]:
    """The name of a transform, and its number: ``bucket[4]`` has one."""
    found = _WITH_NUMBER.fullmatch(transform)
    return (found[1], int(found[2])) if found else (transform, None)


def keeps_type(transform: str) -> bool:
    """Whether its results are of the type of its source."""
    return named(transform)[0] in ("identity", "truncate")


def is_known(kind: str, transform: str) -> bool:
    """Whether values of the type ``kind``, or ``struct``, ``list``, ``map``, can be transformed."""
    name, number = named(transform)
    if number:
        is_decimal = kind.startswith("decimal")
        if name == "truncate":
            return is_decimal or kind in _TRUNCATED
        return is_decimal or kind in (*_TRUNCATED, "date", *_TIMES)
    if transform == "identity":
        return kind not in _NESTED
    return transform == VOID or kind in _UNITS.get(transform, ())


def is_sortable(kind: str, transform: str) -> bool:
    """Whether rows can be sorted by transformed values of the type ``kind``, which Spark has."""
    if kind not in _SPARK and not kind.startswith("decimal"):
        return False
    return transform == "identity" or is_known(kind, transform)
