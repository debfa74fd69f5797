"""Schemas of a Paimon table, read from ``<table>/schema/schema-<id>``."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_merge.metadata.checked import whole
from airflow_provider_merge.metadata.model import Column, TableSchema
from airflow_provider_merge.storage.failures import unreadable


def parsed_schema(path: str, text: str) -> TableSchema:
    """The schema that a file holds.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    try:
        document = json.loads(text)
        columns = tuple(
            Column(str(f["name"]), _type(f["type"]), whole(f["id"])) for f in document["fields"]
        )
        schema = TableSchema(
            schema_id=int(document["id"]),
            columns=columns,
            partition_keys=tuple(str(key) for key in document.get("partitionKeys") or ()),
            primary_keys=tuple(str(key) for key in document.get("primaryKeys") or ()),
            options={str(k): str(v) for k, v in (document.get("options") or {}).items()},
        )
        # Every partition key is a column.
        _ = schema.partition_types
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, f"is not a schema: {repr(error)[:200]}") from None
    return schema


def _type(document: Any) -> str:
    """A type as text: simple ones are text already, nested ones are objects."""
    if isinstance(document, str):
        return document
    kind = str(document["type"])
    name, _, rest = kind.partition(" ")
    if name == "ROW":
        inner = ", ".join(f"{f['name']} {_type(f['type'])}" for f in document["fields"])
    elif name == "MAP":
        inner = f"{_type(document['key'])}, {_type(document['value'])}"
    else:
        inner = _type(document["element"])
    return f"{name}<{inner}>" + (f" {rest}" if rest else "")
