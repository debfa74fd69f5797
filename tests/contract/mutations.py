"""Every way to break the structure of a valid document, found by walking its published schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# One value of every JSON type.
_SAMPLES: dict[str, Any] = {
    "string": "a text that is no known word",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}
_TWICE = "key-that-stands-for-a-second-one-of-the-same-name"


@dataclass(frozen=True)
class Mutation:
    """A broken document as JSON text, and the path that an error must name."""

    name: str
    path: str
    text: str
    fits_schema: bool = False


@dataclass(frozen=True)
class _Node:
    schema: dict[str, Any]
    path: str
    steps: tuple[str | int, ...]
    value: Any


def mutations(document: Any, schema: dict[str, Any]) -> Iterator[Mutation]:
    """All single mutations of ``document``, which fits ``schema``."""
    for node in _nodes(document, schema, schema, "$", ()):
        if not node.schema:  # any JSON data
            continue
        yield from _wrong_types(document, node)
        if isinstance(node.value, dict):
            yield from _broken_objects(document, node)


def _nodes(
    value: Any,
    schema: dict[str, Any],
    root: dict[str, Any],
    path: str,
    steps: tuple[str | int, ...],
) -> Iterator[_Node]:
    schema = _resolve(value, schema, root)
    yield _Node(schema, path, steps, value)
    if not schema:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nodes(item, schema["items"], root, f"{path}[{index}]", (*steps, index))
    if isinstance(value, dict):
        for key, item in value.items():
            child = schema.get("properties", {}).get(key) or schema["additionalProperties"]
            yield from _nodes(item, child, root, f"{path}.{key}", (*steps, key))


def _resolve(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        inner = _resolve(value, schema["anyOf"][0], root)
        return {**inner, "nullable": True}
    if "oneOf" in schema:
        members = [_resolve(value, member, root) for member in schema["oneOf"]]
        return next(m for m in members if m["properties"]["kind"]["const"] == value["kind"])
    return schema


def _wrong_types(document: Any, node: _Node) -> Iterator[Mutation]:
    fits = {
        "integer": ("integer",),
        "number": ("integer", "number"),
        # Enumerations and constants take no value of the samples.
        None: (),
    }.get(node.schema.get("type"), (node.schema.get("type"),))
    if "const" in node.schema:
        fits = ()
    for kind, sample in _SAMPLES.items():
        if kind in fits or (kind == "null" and node.schema.get("nullable")):
            continue
        yield Mutation(f"{kind} instead", node.path, _dump(_replaced(document, node, sample)))


def _broken_objects(document: Any, node: _Node) -> Iterator[Mutation]:
    for key in node.schema.get("required", ()):
        smaller = {name: item for name, item in node.value.items() if name != key}
        broken = _replaced(document, node, smaller)
        yield Mutation("missing field", f"{node.path}.{key}", _dump(broken))
    if node.schema["additionalProperties"] is False:
        broken = _replaced(document, node, {**node.value, "colour": "red"})
        yield Mutation("unknown field", f"{node.path}.colour", _dump(broken))
    for key, item in node.value.items():
        text = _dump(_replaced(document, node, {**node.value, _TWICE: item}))
        text = text.replace(json.dumps(_TWICE), json.dumps(key))
        yield Mutation("key twice", f"{node.path}.{key}", text, fits_schema=True)


def _replaced(document: Any, node: _Node, value: Any) -> Any:
    if not node.steps:
        return value
    document = copy.deepcopy(document)
    parent = document
    for step in node.steps[:-1]:
        parent = parent[step]
    parent[node.steps[-1]] = value
    return document


def _dump(document: Any) -> str:
    return json.dumps(document)
