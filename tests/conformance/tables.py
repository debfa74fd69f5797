"""The tables that behaviours start from: many small files, four partitions, one of them NULL."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from spark_jobs.contract.statements import ColumnSpec

Row = dict[str, Any]

ROW_GROUP_SIZE = 4


@dataclass(frozen=True)
class SeedTable:
    """A table and its rows. ``files``: rows by file, each file within one partition.

    Every table has a unique ``id`` and a column ``p``, by which it may be partitioned;
    ``bucket_key`` decides the bucket of a row where the table has such, ``time`` its day.
    """

    name: str
    columns: tuple[ColumnSpec, ...]
    files: tuple[tuple[Row, ...], ...] = ()
    bucket_key: str = "id"
    time: str | None = None

    @cached_property
    def rows(self) -> list[Row]:
        """All rows, in the order of the files."""
        return [row for file in self.files for row in file]


def order(id_: int, p: str | None) -> Row:
    """A row of ORDERS: some keys ``k``, texts ``v`` and numbers ``n`` are NULL."""
    last = id_ % 10
    return {
        "id": id_,
        "k": None if last == 7 else id_,
        "v": None if last == 8 else f"v{id_}",
        "n": None if last == 9 else last,
        "req": "r",
        "p": p,
    }


def _order_files() -> tuple[tuple[Row, ...], ...]:
    files = [
        tuple(order(hundred + tens + last, p) for last in range(10))
        for hundred in (100, 200, 300)
        for tens, p in ((0, "a"), (20, "b"), (40, "c"))
    ]
    return (*files, tuple(order(400 + last, None) for last in range(5)))


# ids 100-109, 200-209, 300-309 in partition a, 120-129 … in b, 140-149 … in c, 400-404 in NULL.
ORDERS = SeedTable(
    "orders",
    (
        ColumnSpec("id", "BIGINT", nullable=False),
        ColumnSpec("k", "INT"),
        ColumnSpec("v", "STRING"),
        ColumnSpec("n", "INT"),
        ColumnSpec("req", "STRING", nullable=False),
        ColumnSpec("p", "STRING"),
    ),
    _order_files(),
    bucket_key="k",
)
# In a table with a primary key, no partition may be NULL.
ORDERS_WITHOUT_NULL = SeedTable("orders_without_null", ORDERS.columns, ORDERS.files[:-1])

EMPTY = SeedTable("empty", ORDERS.columns, bucket_key="k")

_NAMED = ("a b", "a.b", "größe", "select", "s", "Mixed")
NAMES = SeedTable(
    "names",
    (
        ColumnSpec("id", "BIGINT"),
        *(ColumnSpec(name, "STRING") for name in _NAMED),
        ColumnSpec("p", "STRING"),
    ),
    tuple(
        tuple(
            {"id": id_} | {name: f"{name} {id_}" for name in _NAMED} | {"p": p}
            for id_ in range(first, first + 3)
        )
        for first, p in ((10, "x"), (20, "y"), (30, "z"))
    ),
)


def nested(id_: int, p: str) -> Row:
    """A row of NESTED; some values, fields and elements are NULL."""
    return {
        "id": id_,
        "info": None if id_ % 5 == 0 else {"city": f"c{id_}", "zip": None if id_ % 2 else id_},
        "tags": None if id_ % 5 == 1 else [f"t{id_}", None, "x"][: id_ % 4],
        "attrs": None if id_ % 5 == 2 else [("a", id_), ("b", None)],
        "deep": [{"k": 1, "v": {"w": "é"}}, {"k": id_, "v": None}],
        "p": p,
    }


NESTED = SeedTable(
    "nested",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("info", "STRUCT<city: STRING, zip: INT>"),
        ColumnSpec("tags", "ARRAY<STRING>"),
        ColumnSpec("attrs", "MAP<STRING, INT>"),
        ColumnSpec("deep", "ARRAY<STRUCT<k: INT NOT NULL, v: STRUCT<w: STRING>>>"),
        ColumnSpec("p", "STRING"),
    ),
    tuple(
        tuple(nested(id_, p) for id_ in range(first, first + 7))
        for first, p in ((10, "x"), (20, "y"), (30, "z"))
    ),
)


def deep(id_: int, p: str) -> Row:
    """A row of DEEP: in every fifth one the structs are NULL, in every fourth the inner one is."""
    inner = None if id_ % 4 == 0 else {"x": id_, "y": "y"}
    return {
        "id": id_,
        "t": None if id_ % 5 == 0 else {"b": "tb", "id": 0},
        "s": None if id_ % 5 == 0 else {"a": inner, "c d": "c", "list": [1]},
        "b": "b",
        "items": [{"x": 1}],
        "must": {"n": 1, "m": None},
        "p": p,
    }


# A column has the name of the alias t, and its field the name of another column.
DEEP = SeedTable(
    "deep",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("t", "STRUCT<b: STRING, id: INT>"),
        ColumnSpec(
            "s", "STRUCT<a: STRUCT<x: INT, y: VARCHAR(3)>, `c d`: STRING, list: ARRAY<INT>>"
        ),
        ColumnSpec("b", "STRING"),
        ColumnSpec("items", "ARRAY<STRUCT<x: INT>>"),
        ColumnSpec("must", "STRUCT<n: INT NOT NULL, m: INT>"),
        ColumnSpec("p", "STRING"),
    ),
    tuple(
        tuple(deep(id_, p) for id_ in range(first, first + 6))
        for first, p in ((10, "x"), (20, "y"))
    ),
)

_NAN, _INF = float("nan"), float("inf")
_UTC = dt.UTC
_VALUES: dict[str, tuple[str, list[Any]]] = {
    "flag": ("BOOLEAN", [True, False, None]),
    "tiny": ("TINYINT", [-128, 127, None]),
    "small": ("SMALLINT", [-(2**15), 2**15 - 1, None]),
    "whole": ("INT", [-(2**31), None, 2**31 - 1]),
    "big": ("BIGINT", [-(2**63), None, 2**63 - 1]),
    "single": ("FLOAT", [_NAN, -0.0, 1.5, None, -_INF]),
    "double": ("DOUBLE", [-0.0, _NAN, 0.1, _INF, None]),
    "price": ("DECIMAL(10, 2)", [Decimal("-99999999.99"), Decimal("0.01"), None]),
    "wide": ("DECIMAL(38, 10)", [Decimal("1234567890123456789012345678.0123456789"), None]),
    "text": ("STRING", ["", "é\u0000\U0001f600", "o'k\\n\n", None]),
    "bytes": ("BINARY", [b"", b"\x00\xff", None]),
    "day": ("DATE", [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31), None]),
    "at": (
        "TIMESTAMP",
        [
            dt.datetime(1883, 11, 18, 12, 0, 0, 1, _UTC),
            dt.datetime(2024, 3, 31, 1, 30, 0, 999_999, _UTC),
            None,
        ],
    ),
    "local": (
        "TIMESTAMP_NTZ",
        [dt.datetime(2024, 3, 31, 2, 30, 0, 123_456), dt.datetime(1969, 12, 31, 23, 59), None],  # noqa: DTZ001
    ),
    "code": ("VARCHAR(5)", ["abc", "", None]),
}


def value_row(id_: int, p: str) -> Row:
    """A row of VALUES: the edges of every type and NULL, in changing company."""
    values = {name: known[id_ % len(known)] for name, (_, known) in _VALUES.items()}
    return {"id": id_, **values, "p": p}


VALUES = SeedTable(
    "values",
    (
        ColumnSpec("id", "BIGINT"),
        *(ColumnSpec(name, type_) for name, (type_, _) in _VALUES.items()),
        ColumnSpec("p", "STRING"),
    ),
    tuple(
        tuple(value_row(id_, p) for id_ in range(first, first + 10))
        for first, p in ((10, "x"), (20, "y"), (30, "z"))
    ),
    time="at",
)


def event(id_: int, at: str | None, v: str | None, p: str | None) -> Row:
    """A row of EVENTS; ``at`` is a time in UTC."""
    moment = None if at is None else dt.datetime.fromisoformat(at).replace(tzinfo=_UTC)
    return {"id": id_, "at": moment, "v": v, "p": p}


# Two days of 2026, one before 1970, and no time at all.
EVENTS = SeedTable(
    "events",
    (
        ColumnSpec("id", "BIGINT", nullable=False),
        ColumnSpec("at", "TIMESTAMP"),
        ColumnSpec("v", "STRING"),
        ColumnSpec("p", "STRING"),
    ),
    (
        tuple(event(10 + n, f"2026-01-31T{10 + n}:00:00.000001", f"v{n}", "a") for n in range(5)),
        tuple(event(20 + n, f"2026-02-01T0{n}:00:00", None, "b") for n in range(4)),
        (
            event(30, "1969-12-31T23:59:59.999999", "v", "b"),
            event(31, "1969-12-31T00:00:00", None, None),
        ),
        tuple(event(40 + n, None, "v", "a") for n in range(3)),
    ),
    time="at",
)
