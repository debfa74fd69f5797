"""Values of a case (JSON) as Python values of an Arrow type, and a form in which rows compare.

A struct is an object, a map ``{"__map__": [[key, value], …]}``, an array a list; dates, timestamps,
decimals and binaries are strings. Timestamps without an offset are in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa


def from_json(value: Any, kind: pa.DataType) -> Any:
    """The value as pyarrow takes it."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = {name.lower(): each for name, each in value.items()}
        return {each.name: from_json(fields.get(each.name.lower()), each.type) for each in kind}
    if pa.types.is_map(kind):
        pairs = value["__map__"] if isinstance(value, Mapping) else value
        return [(from_json(k, kind.key_type), from_json(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_list(kind):
        return [from_json(each, kind.value_type) for each in value]
    return _atomic(value, kind)


def _atomic(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return Decimal(str(value))
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        moment = dt.datetime.fromisoformat(value)
        if kind.tz is None:
            return moment
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_binary(kind):
        return value.encode()
    return value


def as_arrow(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows of a case, by position, as an Arrow table.

    Raises:
        ValueError: a row has another number of values than there are columns.
    """
    dictionaries = [
        {each.name: from_json(v, each.type) for each, v in zip(schema, row, strict=True)}
        for row in rows
    ]
    return pa.Table.from_pylist(dictionaries, schema=schema)


def comparable(table: pa.Table) -> Counter[str]:
    """The rows as a multiset of texts; names of fields do not matter, their order does."""
    columns = [column.to_pylist() for column in table.columns]
    kinds = table.schema.types
    rows = zip(*columns, strict=True) if columns else ()
    return Counter(
        f"({', '.join(_text(v, kind) for v, kind in zip(row, kinds, strict=True))})" for row in rows
    )


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "NULL"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(_text(value[each.name], each.type) for each in kind) + "}"
    if pa.types.is_map(kind):
        pairs = (f"{_text(k, kind.key_type)}: {_text(v, kind.item_type)}" for k, v in value)
        return "map{" + ", ".join(sorted(pairs)) + "}"
    if pa.types.is_list(kind):
        return "[" + ", ".join(_text(each, kind.value_type) for each in value) + "]"
    return str(value) if isinstance(value, (Decimal, dt.date)) else repr(value)


def difference(found: Counter[str], expected: Counter[str]) -> str:
    """What is missing and what is too much, in one line; empty when both are equal."""
    parts = [
        f"{what} {_listed((left - right).elements())}"
        for what, left, right in (("missing", expected, found), ("unexpected", found, expected))
        if left - right
    ]
    return "; ".join(parts)


def _listed(rows: Iterable[str]) -> str:
    known = sorted(rows)
    more = f" and {len(known) - 5} more" if len(known) > 5 else ""
    return ", ".join(known[:5]) + more
