"""pypaimon's files, of which none may claim to be more than its bytes can hold. Driver only."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any


class CheckedFiles:
    """pypaimon's file IO, which hands out no manifest that could fill the memory."""

    def __init__(self, file_io: Any) -> None:
        self._file_io = file_io

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file_io, name)

    def new_input_stream(self, path: str) -> Any:
        """As pypaimon's, which reads a manifest in one piece anyway."""
        stream = self._file_io.new_input_stream(path)
        if path.rpartition("/")[0].rpartition("/")[2] != "manifest":
            return stream
        with stream:
            content = stream.read()
        require_plain_avro(content)
        return io.BytesIO(content)


def require_plain_avro(content: bytes) -> None:
    """Check that every record and every item of an Avro file takes room in it.

    Else a list of a few bytes could be longer than any memory.

    Raises:
        ValueError: the file's schema is not of records, or has types that take no room.
    """
    import fastavro

    schema = fastavro.reader(io.BytesIO(content)).writer_schema
    members = schema if isinstance(schema, list) else [schema]
    if not all(isinstance(each, dict) and each.get("type") == "record" for each in members):
        raise ValueError("an Avro file has no records")
    if any(map(_takes_no_room, _nodes(schema))):
        raise ValueError("an Avro file has items that take no room")


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All types within a schema that are written as objects."""
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
