"""JSON Schema (draft 2020-12) of the contract, generated from its dataclasses.

The type rules are those of ``codec``. The schema does not state what only the constructors check (a
text that is not a name, a clause that can never apply), so a valid document can still be refused.
The first line of a class's docstring becomes its description.

``python -m spark_jobs.contract.schema FOLDER`` writes the published files.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from spark_jobs.contract import batch, codec, request, result

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(cls: type, version: int) -> Schema:
    """The schema of documents of ``cls``, whose ``version`` field must be ``version``."""
    definitions: dict[str, Schema] = {}
    _reference(cls, definitions)
    root = definitions.pop(cls.__name__)
    root["properties"]["version"] = {"const": version, "type": "integer"}
    root["required"].append("version")
    title = f"{cls.__name__} v{version}"
    return {"$schema": DIALECT, "title": title, **root, "$defs": dict(sorted(definitions.items()))}


def published() -> dict[str, str]:
    """The text of every published schema, by file name."""
    documents = {
        f"job_request.v{request.VERSION}.schema.json": schema_of(
            request.JobRequest, request.VERSION
        ),
        f"job_batch.v{request.VERSION}.schema.json": schema_of(batch.JobBatch, request.VERSION),
        f"job_result.v{result.VERSION}.schema.json": schema_of(result.JobResult, result.VERSION),
    }
    return {
        name: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }


def _reference(cls: type, definitions: dict[str, Schema]) -> Schema:
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {}  # a placeholder, in case a class contains itself
        definitions[cls.__name__] = _object(cls, definitions)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _object(cls: type, definitions: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    kind = codec.kind_of(cls)
    if kind is not None:
        properties["kind"] = {"const": kind}
        required.append("kind")
    annotations = codec.field_types(cls)
    for field in codec.document_fields(cls):
        properties[field.name] = _type(annotations[field.name], definitions)
        if codec.is_required(field):
            required.append(field.name)
        else:
            properties[field.name]["default"] = _default(field)
    return {
        "description": (cls.__doc__ or "").strip().splitlines()[0],
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _type(annotation: Any, definitions: dict[str, Schema]) -> Schema:
    if annotation is Any:
        return {}
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _union(get_args(annotation), definitions)
    if origin is Literal:
        return {"enum": list(get_args(annotation))}
    if origin is tuple:
        return {"type": "array", "items": _type(get_args(annotation)[0], definitions)}
    if origin is Mapping:
        value = _type(get_args(annotation)[1], definitions)
        return {"type": "object", "additionalProperties": value}
    if dataclasses.is_dataclass(annotation):
        return _reference(typing.cast("type", annotation), definitions)
    return {"type": _SCALARS[annotation]}


def _union(members: tuple[Any, ...], definitions: dict[str, Schema]) -> Schema:
    schemas = [_type(member, definitions) for member in members if member is not type(None)]
    if len(schemas) == len(members):
        return {"oneOf": schemas}
    return {"anyOf": [*schemas, {"type": "null"}]}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return codec.encode(field.default)
    factory = typing.cast("typing.Callable[[], Any]", field.default_factory)
    return codec.encode(factory())


def main(folder: str) -> None:
    """Write the published schemas into ``folder``."""
    for name, text in published().items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
