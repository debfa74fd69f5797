"""The columns of a Paimon schema: names in any case, and what people read of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.format.types import is_nullable, to_spark
from spark_jobs.connectors.shared.table.alterations import Described, find_name, property_text
from spark_jobs.errors import NotSupportedError

_PARTS: Final = {"ARRAY": ("element",), "MAP": ("key", "value")}


@dataclass(frozen=True, slots=True)
class Place:
    """A column, a nested field, or what an array or map contains.

    ``path`` is as the schema spells it. ``siblings`` are the names beside it, for fields.
    ``in_key``: it is within the keys of a map.
    """

    path: tuple[str, ...]
    type: Any
    siblings: tuple[str, ...] = ()
    is_field: bool = True
    in_key: bool = False


def find_place(fields: Sequence[Any], path: Sequence[str]) -> Place | None:
    """The place that ``path`` names in pypaimon's ``fields``, in any case; None: there is none."""
    place: Place | None = None
    for part in path:
        place = _within(_documents(fields) if place is None else place.type, part, place)
        if place is None:
            return None
    return place


def names_at(fields: Sequence[Any], path: Sequence[str]) -> list[str] | None:
    """The names in the struct at ``path``, or of the table; None if there is no struct."""
    if not path:
        return [each.name for each in fields]
    place = find_place(fields, path)
    if place is None or isinstance(place.type, str) or _kind(place.type) != "ROW":
        return None
    return [each["name"] for each in place.type["fields"]]


def described(schema: Any) -> Described:
    """The parts of pypaimon's ``TableSchema`` for people, by what tells them apart."""
    parts: dict[Any, tuple[str, str]] = {}
    for field in schema.fields:
        parts["column", field.id] = ("column", _column_text(field))
        for number, text in _nested(field.type.to_dict(), (field.name,)):
            parts["column", number] = ("column", text)
    if schema.comment:
        parts["comment"] = ("comment", schema.comment)
    for name, value in sorted(schema.options.items()):
        parts["option", name] = (f"property {name}", property_text(name, value))
    return parts


def type_text(kind: Any) -> str:
    """A type for people: structs without their fields, which have lines of their own."""
    if isinstance(kind, str):
        try:
            return to_spark(kind, "").upper()
        except NotSupportedError:
            return kind
    if _kind(kind) == "ARRAY":
        return f"ARRAY<{type_text(kind['element'])}>"
    if _kind(kind) == "MAP":
        return f"MAP<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    return {"ROW": "STRUCT"}.get(_kind(kind), _kind(kind))


def _documents(fields: Sequence[Any]) -> dict[str, Any]:
    return {"type": "ROW", "fields": [{"name": f.name, "type": f.type.to_dict()} for f in fields]}


def _kind(document: Any) -> str:
    return str(document["type"]).upper().split()[0]


def _within(kind: Any, part: str, above: Place | None) -> Place | None:
    if isinstance(kind, str):
        return None
    path = () if above is None else above.path
    in_key = above is not None and above.in_key
    if _kind(kind) == "ROW":
        names = tuple(each["name"] for each in kind["fields"])
        index = find_name(part, names)
        if index is None:
            return None
        return Place((*path, names[index]), kind["fields"][index]["type"], names, True, in_key)
    inner = part.lower()
    if inner not in _PARTS.get(_kind(kind), ()):
        return None
    return Place((*path, inner), kind[inner], (), False, in_key or inner == "key")


def _column_text(field: Any) -> str:
    return _text((field.name,), field.type.to_dict(), field.description, field.default_value)


def _nested(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    if isinstance(kind, str):
        return
    for field in kind.get("fields", ()) if _kind(kind) == "ROW" else ():
        inner = (*path, field["name"])
        yield field["id"], _text(inner, field["type"], field.get("description"), None)
        yield from _nested(field["type"], inner)
    for part in _PARTS.get(_kind(kind), ()):
        yield from _nested(kind[part], (*path, part))


def _text(path: tuple[str, ...], kind: Any, comment: str | None, default: str | None) -> str:
    parts = [".".join(path), type_text(kind)]
    if not is_nullable(kind):
        parts.append("NOT NULL")
    if default is not None:
        parts.append(f"DEFAULT {default}")
    if comment:
        parts.append(f"COMMENT {comment!r}")
    return " ".join(parts)
