"""The definition of a table as documents in Iceberg's JSON form, which changes edit."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import (
    UnknownTypeError,
    opaque_type,
    parse_fields,
    spark_type,
)
from spark_jobs.connectors.shared.table.alterations import Described, order_of_names, property_text
from spark_jobs.contract.partition_keys import IDENTITY, PartitionKey
from spark_jobs.contract.sort_fields import SortField
from spark_jobs.formats.iceberg.transforms import named

Document = dict[str, Any]

NESTED: Final = {"list": ("element",), "map": ("key", "value")}


@dataclass
class Definition:
    """What of a table a statement may change; ``of`` reads it, and changes edit it.

    ``fields`` are those of the schema, ``specs`` the fields of all partition specs by id, ``spec``
    those of the current one, ``order`` those of the sort order.
    """

    version: int
    fields: list[Document]
    identifiers: list[int]
    last_column_id: int
    spec: list[Document]
    specs: Mapping[int, list[Document]]
    last_partition_id: int
    order: list[Document]
    properties: dict[str, str] = field(repr=False)
    mapping_follows: bool = False

    @classmethod
    def of(cls, metadata: Any) -> Definition:
        """The definition in pyiceberg's ``TableMetadata``."""
        schema = _document(metadata.schema())
        specs = {each.spec_id: _document(each)["fields"] for each in metadata.partition_specs}
        return cls(
            version=int(metadata.format_version),
            fields=schema["fields"],
            identifiers=sorted(schema.get("identifier-field-ids") or ()),
            last_column_id=int(metadata.last_column_id),
            spec=copy.deepcopy(specs[metadata.default_spec_id]),
            specs=specs,
            last_partition_id=int(metadata.last_partition_id or _FIRST_PARTITION_FIELD - 1),
            order=_document(metadata.sort_order())["fields"],
            properties=dict(metadata.properties),
        )

    @property
    def schema(self) -> Document:
        """The schema, without its id."""
        return {
            "type": "struct",
            "fields": self.fields,
            "identifier-field-ids": sorted(self.identifiers),
        }

    def new_ids(self) -> Iterator[int]:
        """Ids that no column has had; each counts as taken."""
        while True:
            self.last_column_id += 1
            yield self.last_column_id

    def paths(self) -> dict[int, tuple[Document, tuple[str, ...]]]:
        """All fields with names by id, nested ones too, each with its path."""
        return {each["id"]: (each, path) for each, path in walk(self.fields)}

    def described(self) -> Described:
        """The parts for people, by what tells them apart."""
        parts: dict[Any, tuple[str, str]] = {"version": ("format-version", str(self.version))}
        names: dict[int, tuple[str, ...]] = {}
        for number, (each, path) in self.paths().items():
            parts["column", number] = ("column", _column_text(each, path))
            names[number] = path
        keys = [".".join(names[i]) for i in self.identifiers if i in names]
        parts["identifiers"] = ("identifier fields", ", ".join(sorted(keys)))
        partition = [_partition_text(each, names) for each in self.spec]
        parts["partition"] = ("partition fields", ", ".join(partition))
        order = [_order_text(each, names) for each in self.order]
        parts["order"] = ("sort order", ", ".join(order))
        for name, value in sorted(self.properties.items()):
            what = "comment" if name == "comment" else f"property {name}"
            parts["property", name] = (what, property_text(name, value))
        return parts

    def moved(self, before: Definition) -> Iterator[tuple[str, str]]:
        """The orders of columns, before and now, wherever columns that both have were moved."""
        was, now = _siblings(before.fields), _siblings(self.fields)
        names = {number: path[-1] for number, (_, path) in self.paths().items()}
        for place in now.keys() & was.keys():
            old, new = ([names[i] for i in each[place] if i in names] for each in (was, now))
            moved = order_of_names(old, new)
            if moved is not None:
                yield moved


_FIRST_PARTITION_FIELD: Final = 1000


def walk(
    fields: Sequence[Document], above: tuple[str, ...] = ()
) -> Iterator[tuple[Document, tuple[str, ...]]]:
    """All fields with names, each before those within it, with its path."""
    for struct_field in fields:
        path = (*above, struct_field["name"])
        yield struct_field, path
        yield from _walk_type(struct_field["type"], path)


def _walk_type(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[Document, tuple[str, ...]]]:
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from walk(kind["fields"], path)
    for part in NESTED.get(kind["type"], ()):
        yield from _walk_type(kind[part], (*path, part))


def _siblings(fields: Sequence[Document]) -> dict[int, list[int]]:
    """The ids of the fields of each struct, by the id of the field that is one; 0: the table."""
    siblings = {0: [each["id"] for each in fields]}
    for struct_field, _ in walk(fields):
        kind = struct_field["type"]
        if not isinstance(kind, str) and kind["type"] == "struct":
            siblings[struct_field["id"]] = [inner["id"] for inner in kind["fields"]]
    return siblings


def mark(document: Any) -> str:
    """What tells one document from another: a hash."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def type_text(kind: Any) -> str:
    """A type for people: structs without their fields, which have lines of their own."""
    if isinstance(kind, str):
        (parsed,) = parse_fields({"fields": [_nameless(kind)]})
        try:
            return opaque_type(parsed.type) or spark_type(parsed.type)
        except UnknownTypeError:
            return kind
    if kind["type"] == "list":
        return f"ARRAY<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"MAP<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    return str(kind["type"]).upper()


def key_of(part: Mapping[str, Any], column: str) -> PartitionKey:
    """A partition or sort field as people write it."""
    return PartitionKey(column, *named(str(part["transform"])))


def _document(model: Any) -> Any:
    return json.loads(model.model_dump_json())


def _nameless(kind: str) -> Document:
    return {"id": 0, "name": "", "type": kind, "required": False}


def _column_text(each: Document, path: tuple[str, ...]) -> str:
    parts = [".".join(path), type_text(each["type"])]
    if each.get("required"):
        parts.append("NOT NULL")
    if each.get("write-default") is not None:
        parts.append(f"DEFAULT {each['write-default']}")
    if each.get("doc"):
        parts.append(f"COMMENT {each['doc']!r}")
    return " ".join(parts)


def _partition_text(part: Document, names: Mapping[int, tuple[str, ...]]) -> str:
    column = ".".join(names.get(part["source-id"], (str(part["name"]),)))
    key = key_of(part, column)
    is_plain = key.transform == IDENTITY and part["name"] == column
    return str(key) if is_plain else f"{key} AS {part['name']}"


def _order_text(part: Document, names: Mapping[int, tuple[str, ...]]) -> str:
    column = ".".join(names.get(part["source-id"], ("?",)))
    return str(
        SortField(
            key_of(part, column), part["direction"] == "desc", part["null-order"] == "nulls-first"
        )
    )
