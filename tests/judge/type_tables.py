"""Tables with a column of every type, as lists of rows, and what statements mean for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from tests.judge.type_matrix import Role, supported
from tests.judge.type_values import Kind, row_type
from tests.support.judged_values import Number, Row

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - values have no zones
_IDS_PER_KIND = 100
_FIRST_SOURCE_ID = 50
FIXED = {"id": "BIGINT", "kind": "STRING", "note": "STRING"}


@dataclass(frozen=True)
class Types:
    """Two tables whose files have one format: a target, and a source with ``target``, an id in it.

    Each row differs from the others in the columns of one type, which ``kind`` names: in the column
    of the type and in one with structs, arrays and maps of it.
    """

    file_format: str

    @cached_property
    def flat(self) -> list[Kind]:
        """The types that have a column."""
        return supported(Role.CARRIED, self.file_format)

    @cached_property
    def nested(self) -> list[Kind]:
        """The types of which there are nested values, too."""
        return supported(Role.NESTED, self.file_format)

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns of the target."""
        flat = {kind.column: kind.paimon for kind in self.flat}
        return FIXED | flat | {_nested_column(kind): _nested_type(kind) for kind in self.nested}

    def target(self) -> list[Row]:
        """Each type's values but the last one, and NULL."""
        rows = []
        for number, kind in enumerate(self.flat):
            values = self._special(kind)
            known = [*(values[:-1] or values), None]
            rows += [
                self._row(kind, value, number * _IDS_PER_KIND + i, "old")
                for i, value in enumerate(known)
            ]
        return rows

    def source(self) -> list[Row]:
        """Each type's values, of those that are equal only one, and NULL."""
        targets = {row["id"] for row in self.target()}
        rows = []
        for number, kind in enumerate(self.flat):
            first = number * _IDS_PER_KIND
            values = [value for value in self._special(kind) if repr(value) != "-0.0"]
            for i, value in enumerate([*values, None]):
                row = self._row(kind, value, first + _FIRST_SOURCE_ID + i, "new")
                other = first + i + 1
                rows.append(row | {"target": other if other in targets else None})
        return rows

    def _special(self, kind: Kind) -> Sequence[Any]:
        return kind.values_in(self.file_format)[1:]

    def _row(self, kind: Kind, value: Any, id_: int, note: str) -> Row:
        row: Row = {"id": id_, "kind": kind.column, "note": note}
        for each in self.flat:
            row[each.column] = value if each is kind else each.values[0]
        for each in self.nested:
            inner = value if each is kind else each.values[0]
            row[_nested_column(each)] = None if inner is None else _nested(each, inner)
        return row


def _nested_column(kind: Kind) -> str:
    return f"nested_{kind.column}"


def _nested_type(kind: Kind) -> dict[str, Any]:
    fields = [
        ("f", kind.paimon),
        ("a", {"type": "ARRAY", "element": kind.paimon}),
        ("m", {"type": "MAP", "key": "STRING", "value": kind.paimon}),
    ]
    if not kind.is_nested:
        fields.append(("k", {"type": "MAP", "key": kind.paimon, "value": "INT"}))
    return row_type(*fields)


def _nested(kind: Kind, value: Any) -> Row:
    found = {"f": value, "a": [value, None, kind.values[0]], "m": {"k": value, "": None}}
    return found if kind.is_nested else found | {"k": {value: 1}}


def equal(left: Any, right: Any) -> bool:
    """Whether ``=`` is TRUE."""
    if isinstance(left, Number) and isinstance(right, Number):
        return float(left) == float(right) or repr(left) == repr(right)
    return left is not None and right is not None and bool(left == right)


def is_in(kind: Kind, values: Iterable[Any]) -> str:
    """A condition in SQL: the type's column has one of the values."""
    if not kind.is_nested or kind.paimon["type"] != "MAP":
        listed = ", ".join(literal(kind.paimon, value) for value in values)
        return f"{kind.column} IN ({listed})"
    entries = ", ".join(f"map_entries({literal(kind.paimon, value)})" for value in values)
    return f"map_entries({kind.column}) IN ({entries})"


def literal(kind: Any, value: Any) -> str:
    """The value in SQL; ``kind`` is its type of Paimon's in JSON form."""
    if value is None:
        return "NULL"
    if not isinstance(kind, str):
        return _nested_literal(kind, value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, date):
        return f"DATE'{value}'"
    if kind.startswith("TIMESTAMP"):
        text = (_EPOCH + timedelta(microseconds=value // 1000)).isoformat(" ")
        return f"TIMESTAMP'{text}Z'" if "LOCAL" in kind else f"TIMESTAMP_NTZ'{text}'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    number = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return f"CAST('{number}' AS {kind})"


def _nested_literal(kind: Any, value: Any) -> str:
    if kind["type"] == "ARRAY":
        parts = [literal(kind["element"], each) for each in value]
        return f"array({', '.join(parts)})"
    if kind["type"] == "MAP":
        parts = [
            literal(kind[part], each)
            for pair in value.items()
            for part, each in zip(("key", "value"), pair, strict=True)
        ]
        return f"map({', '.join(parts)})"
    fields = [f"'{f['name']}', {literal(f['type'], value[f['name']])}" for f in kind["fields"]]
    return f"named_struct({', '.join(fields)})"


def wrong_values(found: Iterable[Row], expected: Sequence[Row]) -> list[str]:
    """Rows that are missing or too many, and columns with other values, each on a line."""
    rows = {row["id"]: row for row in expected}
    problems = []
    for row in found:
        wanted = rows.pop(row["id"], None)
        if wanted is None:
            problems.append(f"row {row['id']} of {row['kind']} is too many")
            continue
        problems += [
            f"row {row['id']} of {row['kind']}: {name} is {row[name]!r}, not {wanted[name]!r}"
            for name in wanted
            if row[name] != wanted[name]
        ]
    return problems + [f"row {row['id']} of {row['kind']} is missing" for row in rows.values()]
