"""Pairs the columns of an older schema with those of the table, by field id.

Follows Paimon's ``SchemaEvolutionUtil``: a column that was dropped and added again is another
column, whatever its name. Types may have been widened; anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from spark_jobs.connectors.paimon.format.types import atomic_parts, is_nullable
from spark_jobs.datafiles.field_mapping import FieldMapping

# The decimal digits that hold any value of the type.
_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "INTEGER": 10, "BIGINT": 19}
_WITH_LENGTH: Final = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_LONGEST: Final = {"STRING": "VARCHAR", "BYTES": "VARBINARY"}
_MAX_LENGTH: Final = 2147483647
_MICROSECONDS: Final = 6


class SchemaField(NamedTuple):
    """A column or nested field: its id, its type in JSON form, and its Arrow field."""

    id: int
    type: Any
    arrow: pa.Field


class ChangedTypeError(Exception):
    """A column's type was changed in a way that is not supported."""

    def __init__(self, column: str, old: Any, new: Any) -> None:
        super().__init__(column)
        self.column = column
        self.old = _shown(old)
        self.new = _shown(new)


def mappings(
    old: Sequence[SchemaField], new: Sequence[SchemaField], prefix: str = ""
) -> tuple[FieldMapping, ...]:
    """How each column of ``new``, the table's, is found in files with the columns of ``old``.

    Raises:
        ChangedTypeError: names the first column whose type was changed otherwise than by widening.
    """
    by_id = {field.id: field for field in old}
    return tuple(
        _mapping(by_id.get(field.id), field, f"{prefix}{field.arrow.name}") for field in new
    )


def _mapping(old: SchemaField | None, new: SchemaField, path: str) -> FieldMapping:
    if old is None:
        return FieldMapping(new.arrow, None)
    parts, padded = _parts(old.type, new.type, old.arrow.type, new.arrow.type, path)
    return FieldMapping(new.arrow, old.arrow, parts, padded)


def _parts(
    old: Any, new: Any, old_arrow: pa.DataType, new_arrow: pa.DataType, path: str
) -> tuple[tuple[FieldMapping, ...], int]:
    """The mappings of a type's parts, and the length to which its values are padded."""
    if isinstance(old, Mapping) != isinstance(new, Mapping):
        raise ChangedTypeError(path, old, new)
    if not isinstance(old, Mapping):
        if not _is_widened(old, new):
            raise ChangedTypeError(path, old, new)
        return (), _padded_to(old, new)
    if _name(old) != _name(new):
        raise ChangedTypeError(path, old, new)
    if _name(new) == "ROW":
        found = list(_fields(old, old_arrow)), list(_fields(new, new_arrow))
        return mappings(*found, prefix=f"{path}."), 0
    contained = zip(_contained(old, old_arrow), _contained(new, new_arrow), strict=True)
    return tuple(_mapping(a, b, f"{path}.{b.arrow.name}") for a, b in contained), 0


def _fields(paimon: Mapping[str, Any], arrow: pa.StructType) -> Iterator[SchemaField]:
    for field, of_arrow in zip(paimon["fields"], arrow, strict=True):
        yield SchemaField(field["id"], field["type"], of_arrow)


def _contained(paimon: Mapping[str, Any], arrow: pa.DataType) -> list[SchemaField]:
    """The element of an array, or key and value of a map: the same ones in every schema."""
    if _name(paimon) == "ARRAY":
        return [SchemaField(0, paimon["element"], arrow.value_field)]
    return [
        SchemaField(0, paimon["key"], arrow.key_field),
        SchemaField(1, paimon["value"], arrow.item_field),
    ]


def _is_widened(old: str, new: str) -> bool:
    """Whether every value of ``old`` is one of ``new``, which a reader converts without loss."""
    (a, p, s), (b, q, t) = _normal(old), _normal(new)
    if a in _DIGITS and b in _DIGITS:
        return _DIGITS[a] <= _DIGITS[b]
    if b == "DECIMAL" and (a in _DIGITS or a == "DECIMAL"):
        digits, scale = (_DIGITS[a], 0) if a in _DIGITS else (p - s, s)
        return q - t >= digits and t >= scale
    if (a, b) == ("FLOAT", "DOUBLE"):
        return True
    if a != b:
        return False
    if a in _WITH_LENGTH:
        return p <= q
    # Nanoseconds are stored otherwise.
    return p <= q and (p == q or q <= _MICROSECONDS)


def _padded_to(old: str, new: str) -> int:
    (kind, before, _), (_, after, _) = _normal(old), _normal(new)
    return after if kind in ("CHAR", "BINARY") and before != after else 0


def _normal(paimon: str) -> tuple[str, int, int]:
    """Name, length or precision, and scale of an atomic type, with Paimon's defaults."""
    name, first, second = atomic_parts(paimon)
    if name in _LONGEST:
        return _LONGEST[name], _MAX_LENGTH, 0
    if name in _WITH_LENGTH:
        return name, first or 1, 0
    if name == "DECIMAL":
        return name, 10 if first is None else first, second or 0
    if name.startswith("TIMESTAMP") or name == "TIME":
        default = 0 if name == "TIME" else _MICROSECONDS
        return name, default if first is None else first, 0
    return name, 0, 0


def _name(paimon: Mapping[str, Any]) -> str:
    return str(paimon["type"]).upper().split()[0]


def _shown(paimon: Any) -> str:
    if not isinstance(paimon, Mapping):
        return str(paimon)
    if _name(paimon) == "ROW":
        fields = ", ".join(f"{each['name']} {_shown(each['type'])}" for each in paimon["fields"])
        text = f"ROW<{fields}>"
    elif _name(paimon) == "ARRAY":
        text = f"ARRAY<{_shown(paimon['element'])}>"
    else:
        text = f"MAP<{_shown(paimon['key'])}, {_shown(paimon['value'])}>"
    return text if is_nullable(paimon) else f"{text} NOT NULL"
