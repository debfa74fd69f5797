"""Python values that compare exactly, from the judge's JSON and from Arrow alike.

NULL is None; BOOLEAN bool; whole numbers int; FLOAT and DOUBLE ``Number`` (NaN equals NaN, -0.0 is
not 0.0); DECIMAL ``Decimal`` of the type's scale; strings str; binary bytes; DATE ``date``; TIME
``time``; TIMESTAMP int nanoseconds since 1970, of the wall clock without a time zone and of UTC
with one; ARRAY list; MAP dict; ROW dict by field name.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
_EPOCH = date(1970, 1, 1)


class Number(float):
    """A float that equals only the same float: NaN itself, and zero of the same sign."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and repr(self) == repr(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(repr(self))


def from_java(kind: Any, value: Any) -> Any:
    """The value of a column of Paimon's type ``kind`` (JSON form) as ReadPaimon.java writes it."""
    if value is None:
        return None
    if isinstance(kind, Mapping):
        return _nested_from_java(kind, value)
    name = re.match(r"[A-Z]+", kind)
    assert name is not None, kind
    return _ATOMIC.get(name[0], _same)(value)


def _nested_from_java(kind: Mapping[str, Any], value: Any) -> Any:
    name = kind["type"].split()[0]
    if name == "ARRAY":
        return [from_java(kind["element"], each) for each in value]
    if name == "MAP":
        pairs = [(from_java(kind["key"], k), from_java(kind["value"], v)) for k, v in value]
        return _mapping(pairs)
    assert name == "ROW", kind
    fields = zip(kind["fields"], value, strict=True)
    return {field["name"]: from_java(field["type"], each) for field, each in fields}


def _same(value: Any) -> Any:
    return value


def _mapping(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a map holds a key twice: {pairs}"
    return found


def _days(value: int) -> date:
    return _EPOCH + timedelta(days=value)


def _milliseconds(value: int) -> int:
    return value * 1_000_000


def _instant(value: list[int]) -> int:
    return value[0] * 1_000_000 + value[1]


_ATOMIC: dict[str, Callable[[Any], Any]] = {
    "FLOAT": Number,
    "DOUBLE": Number,
    "DECIMAL": Decimal,
    "BINARY": base64.b64decode,
    "VARBINARY": base64.b64decode,
    "BYTES": base64.b64decode,
    "DATE": _days,
    "TIME": _milliseconds,
    "TIMESTAMP": _instant,
}

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def from_arrow(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table."""
    columns = [_column(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column(column: pa.ChunkedArray) -> list[Any]:
    return [_from_scalar(each) for each in column]


def _from_scalar(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_floating(kind):
        return Number(scalar.as_py())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return scalar.value * _NANOSECONDS[kind.unit]
    if pa.types.is_map(kind):
        return _mapping([(_from_scalar(p["key"]), _from_scalar(p["value"])) for p in scalar.values])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_from_scalar(each) for each in scalar.values]
    if pa.types.is_struct(kind):
        return {name: _from_scalar(each) for name, each in scalar.items()}
    return scalar.as_py()


def sort_key(row: Mapping[str, Any]) -> str:
    """Orders rows of one table in any way that is always the same."""
    return repr({name: _sortable(row[name]) for name in sorted(row)})


def _sortable(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((repr(k), _sortable(v)) for k, v in value.items())
    return [_sortable(each) for each in value] if isinstance(value, list) else value


def differences(left: Iterable[Row], right: Iterable[Row]) -> list[str]:
    """The rows that only one side has, each as often as it has more of it; empty when equal."""
    remaining = sorted(right, key=sort_key)
    found = []
    for row in sorted(left, key=sort_key):
        if row in remaining:
            remaining.remove(row)
        else:
            found.append(f"only left: {row}")
    return found + [f"only right: {row}" for row in remaining]


def is_bounded(value: Any, minimum: Any, maximum: Any) -> bool:
    """Whether statistics with these bounds admit the value; NULL and NaN are in no bounds.

    To Java NaN is the greatest of all numbers.
    """
    if value is None or minimum is None or _is_nan(value):
        return True
    return bool(minimum <= value and (_is_nan(maximum) or value <= maximum))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
