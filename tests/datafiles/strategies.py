"""Random tables for the rewriter: every type that a data file may hold, NULLs, NaN, row groups."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAIVE = pa.timestamp("us")
LEAVES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=12)),
    "few": (pa.string(), st.sampled_from(["N", "R", "", "ü"])),
    "binary": (pa.binary(), st.binary(max_size=8)),
    "date": (pa.date32(), st.dates()),
    "millis": (
        pa.timestamp("ms"),
        st.datetimes().map(lambda d: d.replace(microsecond=d.microsecond // 1000 * 1000)),
    ),
    "micros": (pa.timestamp("us"), st.datetimes()),
    "instant": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "decimal9": (pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda i: _d(i, 2))),
    "decimal18": (
        pa.decimal128(18, 3),
        st.integers(-(10**18) + 1, 10**18 - 1).map(lambda i: _d(i, 3)),
    ),
    "decimal38": (pa.decimal128(38, 9), st.integers(-(10**37), 10**37).map(lambda i: _d(i, 9))),
}


def _d(unscaled: int, scale: int) -> Decimal:
    sign, digits = int(unscaled < 0), tuple(int(c) for c in str(abs(unscaled)))
    return Decimal((sign, digits, -scale))


@dataclass(frozen=True)
class Sample:
    """A file's content and what shall happen to it."""

    table: pa.Table
    row_group_size: int
    updates: dict[int, dict[str, Any]]
    deletes: frozenset[int]
    assigned: tuple[str, ...]
    decimal_as_integer: bool
    dictionary: bool


def types() -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    leaf = st.sampled_from(sorted(LEAVES)).map(LEAVES.__getitem__)
    # A recursive strategy by itself makes nested types nearly always.
    return st.one_of(leaf, leaf, leaf, st.recursive(leaf, _nested, max_leaves=4))


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def lists(of: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        return pa.list_(pa.field("element", of[0])), st.lists(st.none() | of[1], max_size=3)

    def maps(of: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        values = st.dictionaries(st.text(max_size=3), st.none() | of[1], max_size=3)
        return pa.map_(pa.string(), of[0]), values.map(lambda d: list(d.items()))

    def structs(of: list[tuple[pa.DataType, Any]]) -> tuple[pa.DataType, Any]:
        fields = [pa.field(f"f{i}", each[0]) for i, each in enumerate(of)]
        values = st.fixed_dictionaries({f"f{i}": st.none() | e[1] for i, e in enumerate(of)})
        return pa.struct(fields), values

    return st.one_of(
        inner.map(lists), inner.map(maps), st.lists(inner, min_size=1, max_size=2).map(structs)
    )


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    columns = draw(st.lists(types(), min_size=1, max_size=4))
    row_count = draw(st.integers(1, 30))
    arrays, fields, values = [], [], {}
    for i, (kind, value) in enumerate(columns):
        nullable = draw(st.booleans())
        values[f"c{i}"] = (st.none() | value) if nullable else value
        drawn = draw(st.lists(values[f"c{i}"], min_size=row_count, max_size=row_count))
        arrays.append(pa.array(drawn, kind))
        fields.append(pa.field(f"c{i}", kind, nullable=nullable))
    rows = st.integers(0, row_count - 1)
    deletes = draw(st.frozensets(rows, max_size=row_count))
    assigned = tuple(draw(st.sets(st.sampled_from(sorted(values)))))
    updates = {}
    for row in sorted(draw(st.sets(rows)) - deletes):
        updates[row] = {name: draw(values[name]) for name in assigned}
    return Sample(
        table=pa.Table.from_arrays(arrays, schema=pa.schema(fields)),
        row_group_size=draw(st.integers(1, row_count)),
        updates=updates,
        deletes=deletes,
        assigned=assigned,
        decimal_as_integer=draw(st.booleans()),
        dictionary=draw(st.booleans()),
    )
