"""The columns that all writers write, with values at the edges of their types."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

# By the names of Spark; ``id`` is unique, ``k`` is there to be changed.
TYPES: Final = {
    "id": ("bigint", pa.int64()),
    "k": ("int", pa.int32()),
    "b": ("boolean", pa.bool_()),
    "i": ("int", pa.int32()),
    "l": ("bigint", pa.int64()),
    "f": ("float", pa.float32()),
    "d": ("double", pa.float64()),
    "s": ("string", pa.string()),
    "x": ("binary", pa.binary()),
    "dt": ("date", pa.date32()),
    "ts": ("timestamp_ntz", pa.timestamp("us")),
    "tz": ("timestamp", pa.timestamp("us", "UTC")),
    "n9": ("decimal(9,2)", pa.decimal128(9, 2)),
    "n18": ("decimal(18,4)", pa.decimal128(18, 4)),
    "n38": ("decimal(38,10)", pa.decimal128(38, 10)),
    "a": ("array<int>", pa.list_(pa.int32())),
    "st": ("struct<x:int,y:string>", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    "m": ("map<string,int>", pa.map_(pa.string(), pa.int32())),
}
FLAT: Final = tuple(name for name, (_, kind) in TYPES.items() if not pa.types.is_nested(kind))
# All of whole milliseconds, so that every writer keeps them.
_FIRST: Final = dt.datetime(1969, 12, 31, 23, 59, 59, 998000, dt.UTC)
_INT: Final = (0, 1, -1, 2**31 - 1, -(2**31))
_LONG: Final = (0, 1, -1, 2**63 - 1, -(2**63))
_REAL: Final = (0.5, -0.0, 0.0, 1e30, -1e30, math.inf, -math.inf)
_TEXT: Final = ("", "a", "ß", "\U0001f600", "z" * 70, "a b", "%")
_NULLS: Final = 11


def table_types(names: Iterable[str]) -> dict[str, str]:
    """The Spark types of columns."""
    return {name: TYPES[name][0] for name in names}


def schema_of(names: Iterable[str]) -> pa.Schema:
    """The Arrow types of columns."""
    return pa.schema([(name, TYPES[name][1]) for name in names])


def row(number: int) -> dict[str, Any]:
    """The row with this id."""
    n = number % 97
    found: dict[str, Any] = {
        "b": n % 2 == 0,
        "i": _INT[n % 5] if n % 3 else n,
        "l": _LONG[n % 5] if n % 3 else n * 10**12,
        "f": _REAL[n % 7] if n % 5 else float(n),
        "d": _REAL[n % 7] if n % 5 else n / 7,
        "s": _TEXT[n % 7] if n % 5 else f"s{n}",
        "x": bytes([n, 255, 0][: n % 4]),
        "dt": dt.date(1969, 12, 1) + dt.timedelta(days=n),
        "ts": _FIRST.replace(tzinfo=None) + dt.timedelta(milliseconds=n),
        "tz": _FIRST + dt.timedelta(milliseconds=n * 1001),
        "n9": Decimal(n - 50) / 4,
        "n18": Decimal(n - 50) * 10**9 / 8,
        "n38": Decimal(n - 50) * 10**20 / 8,
        "a": [n, None][: n % 3],
        "st": {"x": n, "y": f"y{n}"},
        "m": [(f"k{n}", n)],
    }
    # Each column has NULLs in other rows.
    for place, name in enumerate(found):
        if (n + place) % _NULLS == 0:
            found[name] = None
    return {"id": number, "k": n, **found}


def rows(first: int, count: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows with ids from ``first`` on."""
    return [{name: row(number)[name] for name in names} for number in range(first, first + count)]


def as_table(found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """Rows in Arrow form."""
    return pa.Table.from_pylist(list(found), schema=schema_of(names))
