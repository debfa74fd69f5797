"""Records of Avro files from memory, within bounds, for pages and sensors.

A file of a few bytes may claim to hold any number of bytes or records: blocks are unpacked up to a
limit, and schemas whose values take no room are refused, so that time and memory follow the size of
what is there.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.formats.avro.container import AvroBlock, AvroFile
from spark_jobs.formats.avro.decoding import BlockDecoder

MAX_BLOCK: Final = 64 * 1024 * 1024
# What writers make by default is a fourth of it; larger blocks are decoded record by record.
_SMALL_BLOCK: Final = 256 * 1024
_MAX_SCHEMA: Final = 1024 * 1024

Fields = Mapping[str, "Fields | None"]


@dataclass(frozen=True, slots=True)
class Only:
    """Of all records those whose field ``name`` fits; blocks without one are stepped over."""

    name: str
    fits: Callable[[Any], bool]


def records(content: bytes, fields: Fields, only: Only | None = None) -> Iterator[dict[str, Any]]:
    """The records of a file, each with only the named fields that the file has.

    ``fields`` has a name for each field, and below a record those of its own, or None for all.

    Raises:
        ValueError and whatever fastavro raises: the file is damaged or hostile.
        NotSupportedError: it is compressed with an unusual codec.
    """
    file = AvroFile(io.BytesIO(content), MAX_BLOCK, {"zstandard": _unpacked_zstandard})
    if len(file.metadata.get("avro.schema", b"")) > _MAX_SCHEMA:
        raise ValueError("its schema is too large")
    schema = file.schema
    if not _takes_room(schema, (), set()):
        raise ValueError("a record takes no room")
    decoder = BlockDecoder(schema, _pruned(schema, fields))
    names = None if only is None else BlockDecoder(schema, _pruned(schema, {only.name: None}))
    for block in file.blocks():
        if block.records > len(block.data):
            raise ValueError("a block claims more records than it has bytes")
        if only is None or names is None:
            yield from _decoded(decoder, block)
        elif any(only.fits(each[only.name]) for each in _decoded(names, block)):
            found = _decoded(decoder, block)
            yield from (each for each in found if only.fits(each[only.name]))


def _decoded(decoder: BlockDecoder, block: AvroBlock) -> Iterator[dict[str, Any]]:
    if len(block.data) <= _SMALL_BLOCK:
        return iter(decoder.records(block))
    return decoder.one_by_one(block)


def _unpacked_zstandard(packed: bytes, most_bytes: int) -> bytes:
    from backports import zstd

    frame = zstd.ZstdDecompressor()
    try:
        block = frame.decompress(packed, most_bytes)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None
    if not frame.eof:
        raise ValueError("the data is not whole")
    return bytes(block)


def _pruned(schema: Any, fields: Fields) -> Any:
    """The schema of records without the fields that nobody asked for."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its schema is not that of a record")
    pruned = []
    for field in schema["fields"]:
        if field["name"] in fields:
            below = fields[field["name"]]
            pruned.append({**field, "type": _pruned(field["type"], below)} if below else field)
    return {**schema, "fields": pruned}


def _takes_room(schema: Any, open_names: Collection[str], empty: set[str]) -> bool:
    """Whether a value takes room; ``empty`` collects the names of records that take none.

    Raises:
        ValueError: items take no room, or a type holds itself.
    """
    if isinstance(schema, str):
        name = schema.rpartition(".")[2]
        if name in open_names:
            raise ValueError(f"the type {schema} holds itself")
        return schema != "null" and name not in empty
    if isinstance(schema, list):
        for member in schema:
            _takes_room(member, open_names, empty)
        return True
    if isinstance(schema, dict):
        return _object_takes_room(schema, open_names, empty)
    raise ValueError("its schema is not valid")


def _object_takes_room(
    schema: dict[str, Any], open_names: Collection[str], empty: set[str]
) -> bool:
    kind = schema.get("type")
    if kind == "record":
        name = schema["name"].rpartition(".")[2]
        inside = (*open_names, name)
        rooms = [_takes_room(field["type"], inside, empty) for field in schema["fields"]]
        if not any(rooms):
            empty.add(name)
        return any(rooms)
    if kind in ("array", "map"):
        if not _takes_room(schema["items" if kind == "array" else "values"], open_names, empty):
            raise ValueError("items take no room")
        return True
    if kind == "fixed":
        if not schema.get("size"):
            raise ValueError("a fixed type takes no room")
        return True
    return kind == "enum" or _takes_room(kind, open_names, empty)
