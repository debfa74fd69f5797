"""Protects pypaimon from manifests that claim more items than their bytes can hold. Driver only."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any


class CheckedFiles:
    """pypaimon's file IO, except that it rejects manifests that could exhaust the memory."""

    def __init__(self, file_io: Any) -> None:
        self._file_io = file_io

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file_io, name)

    def new_input_stream(self, path: str) -> Any:
        """Open a file as pypaimon does, which reads a manifest in one piece anyway."""
        stream = self._file_io.new_input_stream(path)
        if path.rpartition("/")[0].rpartition("/")[2] != "manifest":
            return stream
        with stream:
            content = stream.read()
        require_plain_avro(content)
        return io.BytesIO(content)


def require_plain_avro(content: bytes) -> None:
    """Check that every record and every array item of an Avro file takes at least one byte.

    Otherwise, an array of a few bytes could have more items than fit into memory.

    Raises:
        ValueError: the file's schema is not a record, or has types that take no bytes.
    """
    import fastavro

    schema = fastavro.reader(io.BytesIO(content)).writer_schema
    members = schema if isinstance(schema, list) else [schema]
    if not all(isinstance(each, dict) and each.get("type") == "record" for each in members):
        raise ValueError("an Avro file has no records")
    if any(map(_takes_no_room, _nodes(schema))):
        raise ValueError("an Avro file has items that take no room")


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All types within a schema that are JSON objects."""
    if isinstance(schema, list):
        for member in schema:
            yield from _nodes(member)
    elif isinstance(schema, dict):
        yield schema
        for part in ("type", "items", "values"):
            yield from _nodes(schema.get(part))
        for field in schema.get("fields", ()):
            yield from _nodes(field.get("type"))


def _takes_no_room(node: dict[str, Any]) -> bool:
    match node.get("type"):
        case "fixed":
            return not node.get("size")
        case "record":
            return all(field.get("type") == "null" for field in node.get("fields", ()))
        case "array":
            return node.get("items") == "null"
    return False
