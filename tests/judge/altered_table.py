"""A model of a table whose schema changes: columns with identities, and rows that keep them.

A value is stored under the identity of its column or nested field. A column that is dropped and
added again is another one, so that its old values are not found; whatever is not found is NULL.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_IDENTITIES = itertools.count()
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the model has no zones

ATOMIC = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "BYTES"),
    *("DECIMAL(9, 2)", "DECIMAL(30, 4)", "STRING", "VARCHAR(5)", "TIMESTAMP(3)", "TIMESTAMP(6)"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
)
WIDER = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "DECIMAL(9, 2)"),
    "SMALLINT": ("INT", "BIGINT", "DECIMAL(9, 2)"),
    "INT": ("BIGINT", "DECIMAL(30, 4)"),
    "BIGINT": ("DECIMAL(30, 4)",),
    "FLOAT": ("DOUBLE",),
    "DECIMAL(9, 2)": ("DECIMAL(12, 2)", "DECIMAL(30, 4)"),
    "VARCHAR(5)": ("VARCHAR(9)", "STRING"),
    "TIMESTAMP(3)": ("TIMESTAMP(6)",),
}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


@dataclass
class Field:
    """A column or nested field; a type is a text, or the fields of a struct or of elements."""

    name: str
    kind: str
    fields: list[Field] = field(default_factory=list)
    identity: int = field(default_factory=lambda: next(_IDENTITIES))

    @property
    def json(self) -> Any:
        """The type in Paimon's JSON form."""
        if not self.fields:
            return self.kind
        named = [
            {"id": number, "name": each.name, "type": each.json}
            for number, each in enumerate(self.fields, 100)
        ]
        row = {"type": "ROW", "fields": named}
        if self.kind == "ARRAY":
            return {"type": "ARRAY", "element": row}
        return {"type": "MAP", "key": "STRING", "value": row} if self.kind == "MAP" else row

    @property
    def way(self) -> list[str]:
        """The path from this field to those in it."""
        inner = {"ARRAY": ["element"], "MAP": ["value"]}.get(self.kind, [])
        return [self.name, *inner]


def random_field(
    rng: random.Random, name: str, types: Sequence[str], *, nested: bool = True
) -> Field:
    """A field of any type; ``types`` are the atomic ones."""
    if nested and rng.random() < 0.35:
        kind = rng.choice(("ROW", "ROW", "ARRAY", "MAP"))
        deeper = [rng.random() < 0.3 for _ in range(2)]
        inner = [random_field(rng, f"{name}_{i}", types, nested=n) for i, n in enumerate(deeper)]
        return Field(name, kind, inner)
    return Field(name, rng.choice(types))


def random_value(rng: random.Random, kind: Field) -> Any:
    """A value as it is stored: structs by identity; NULL now and then."""
    if rng.random() < 0.15:
        return None
    if kind.fields:
        if kind.kind == "ROW":
            return _random_struct(rng, kind)
        count = rng.randrange(3)
        if kind.kind == "ARRAY":
            return [None if rng.random() < 0.2 else _random_struct(rng, kind) for _ in range(count)]
        return {f"k{i}": _random_struct(rng, kind) for i in range(count)}
    return _random_atom(rng, kind.kind)


def _random_struct(rng: random.Random, kind: Field) -> dict[int, Any]:
    return {each.identity: random_value(rng, each) for each in kind.fields}


def _random_atom(rng: random.Random, kind: str) -> Any:
    if kind in _BITS:
        most = 2 ** (_BITS[kind] - 1)
        return rng.choice((0, 1, -1, most - 1, -most, rng.randrange(-99, 99)))
    if kind.startswith("DECIMAL"):
        return Decimal(rng.randrange(-9_999_999, 9_999_999)).scaleb(-2)
    if kind in ("FLOAT", "DOUBLE"):
        value = rng.choice((0.0, -0.0, 1.5, rng.random(), float("inf")))
        return pa.scalar(value, pa.float32()).as_py() if kind == "FLOAT" else value
    if kind.startswith("TIMESTAMP"):
        unit = 1000 if "(3)" in kind else 1
        return _EPOCH + timedelta(microseconds=rng.randrange(-(10**13), 10**13) * unit)
    if kind == "DATE":
        return date(2000, 1, 1) + timedelta(days=rng.randrange(-9999, 9999))
    if kind == "BOOLEAN":
        return rng.random() < 0.5
    text = "".join(rng.choices("abé ", k=rng.randrange(6)))
    return text.encode() if kind == "BYTES" else text


class AlteredTable:
    """The columns and the rows, by the value of the column ``id``."""

    def __init__(self, rng: random.Random, types: Sequence[str] = ATOMIC) -> None:
        self._rng = rng
        self._types = types
        self._names = itertools.count()
        self.columns = [Field("id", "BIGINT"), Field("part", "STRING")]
        self.rows: dict[int, dict[int, Any]] = {}
        # The level and the name of the field that was dropped last.
        self._dropped: tuple[list[Field] | None, str] = None, ""
        for _ in range(4):
            self.columns.append(random_field(rng, self._new_name(), types))

    def __repr__(self) -> str:
        return ", ".join(f"{each.name} {each.json}" for each in self.columns)

    @property
    def free(self) -> list[Field]:
        """The columns that may change."""
        return self.columns[2:]

    def _new_name(self) -> str:
        return f"c{next(self._names)}"

    def alter(self) -> tuple[Any, ...]:
        """Change the schema at random; returns the change as ``JavaTable.alter`` takes it."""
        rng = self._rng
        level, way = self._any_level()
        fixed = 0 if way else 2
        kind = rng.choice(("add", "add", "rename", "drop", "drop", "type", "type"))
        own = level[fixed:]
        if kind == "drop" and len(own) < 2:
            kind = "add"
        wider = [each for each in own if each.kind in WIDER]
        if kind == "type" and wider:
            chosen = rng.choice(wider)
            chosen.kind = rng.choice(WIDER[chosen.kind])
            return "type", [*way, chosen.name], chosen.kind
        if kind == "rename" and own:
            chosen = rng.choice(own)
            before, taken = chosen.name, {each.name for each in level}
            while chosen.name in taken:
                chosen.name += "x"
            return "rename", [*way, before], chosen.name
        if kind == "drop":
            # Java reads a struct as NULL if its file has none of today's fields.
            first = min(own, key=lambda each: each.identity) if way else None
            chosen = rng.choice([each for each in own if each is not first])
            level.remove(chosen)
            self._dropped = (level, chosen.name)
            return "drop", [*way, chosen.name], None
        return self._add(level, way, self._types)

    def add_any(self, types: Sequence[str]) -> None:
        """Add a column or nested field, with atoms of these types."""
        self._add(*self._any_level(), types)

    def _any_level(self) -> tuple[list[Field], list[str]]:
        """All columns, or the fields of any struct, and the path to them."""
        level, way, fixed = self.columns, list[str](), 2
        while True:
            structs = [each for each in level[fixed:] if each.fields]
            if not structs or self._rng.random() < 0.5:
                return level, way
            inner = self._rng.choice(structs)
            level, way, fixed = inner.fields, [*way, *inner.way], 0

    def _add(self, level: list[Field], way: list[str], types: Sequence[str]) -> tuple[Any, ...]:
        name = self._new_name()
        dropped_from, dropped_name = self._dropped
        taken = {each.name for each in level}
        if dropped_from is level and dropped_name not in taken and self._rng.random() < 0.8:
            name = dropped_name
        added = random_field(self._rng, name, types, nested=self._rng.random() < 0.5)
        level.append(added)
        return "add", [*way, name], added.json

    def new_rows(self, ids: range) -> list[dict[int, Any]]:
        """Random rows, which are not added."""
        key, part, *free = self.columns
        return [
            {
                key.identity: id_,
                part.identity: self._rng.choice(("a", "b", None)),
                **{each.identity: random_value(self._rng, each) for each in free},
            }
            for id_ in ids
        ]

    def add(self, rows: list[dict[int, Any]]) -> None:
        """Add rows."""
        for row in rows:
            self.rows[row[self.columns[0].identity]] = copy.deepcopy(row)

    def shown(self, row: dict[int, Any]) -> dict[str, Any]:
        """A row as it is read, by names."""
        return {each.name: shown(each, row.get(each.identity)) for each in self.columns}


def shown(kind: Field, value: Any) -> Any:
    """A stored value as one of today's type."""
    if value is None:
        return None
    if not kind.fields:
        return Decimal(value) if kind.kind.startswith("DECIMAL") else value
    if kind.kind == "ROW":
        return _struct(kind, value)
    if kind.kind == "ARRAY":
        return [None if each is None else _struct(kind, each) for each in value]
    return {key: _struct(kind, each) for key, each in value.items()}


def _struct(kind: Field, value: dict[int, Any]) -> dict[str, Any]:
    return {each.name: shown(each, value.get(each.identity)) for each in kind.fields}
