"""Avro object container files from memory: framed and unpacked here, within bounds, and decoded by
fastavro.

After the Avro 1.11 specification, "Object Container Files". A file of a few bytes may claim to
hold any number of bytes or records: blocks are unpacked up to a limit, and schemas whose values
take no room are refused, so that time and memory follow the size of what is there.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.errors import NotSupportedError

MAX_BLOCK: Final = 64 * 1024 * 1024
# What writers make by default is a fourth of it; larger blocks are decoded record by record.
_SMALL_BLOCK: Final = 256 * 1024
_MAX_SCHEMA: Final = 1024 * 1024
_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_META: Final = {"type": "map", "values": "bytes"}

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
        ValueError, EOFError and whatever else fastavro raises: the file is damaged or hostile.
        NotSupportedError: it is compressed with an unusual codec.
    """
    import fastavro

    source = io.BytesIO(content)
    if source.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an Avro file")
    meta: Any = fastavro.schemaless_reader(source, _META, None)
    sync = source.read(_SYNC)
    document = meta["avro.schema"]
    if len(document) > _MAX_SCHEMA:
        raise ValueError("its schema is too large")
    schema = json.loads(document)
    if not _takes_room(schema, (), set()):
        raise ValueError("a record takes no room")
    decoder = _Decoder.of(schema, _pruned(schema, fields))
    names = None if only is None else _Decoder.of(schema, _pruned(schema, {only.name: None}))
    codec = meta.get("avro.codec", b"null").decode()
    while source.tell() < len(content):
        count, size = _long(source), _long(source)
        packed = source.read(size) if size >= 0 else b""
        if count < 0 or len(packed) != size or source.read(_SYNC) != sync:
            raise ValueError("a block is cut off or damaged")
        block = _unpacked(codec, packed)
        if count > len(block):
            raise ValueError("a block claims more records than it has bytes")
        if only is None or names is None:
            yield from decoder.decoded(block, count)
        elif any(only.fits(each[only.name]) for each in names.decoded(block, count)):
            found = decoder.decoded(block, count)
            yield from (each for each in found if only.fits(each[only.name]))


@dataclass(frozen=True, slots=True)
class _Decoder:
    """Decodes the records of blocks: those of a usual one at once, as the items of an array."""

    record: tuple[Any, Any]
    array: tuple[Any, Any]

    @classmethod
    def of(cls, written: Any, wanted: Any) -> _Decoder:
        import fastavro

        def parsed(schema: Any) -> Any:
            return fastavro.parse_schema(schema)

        arrays = [parsed({"type": "array", "items": each}) for each in (written, wanted)]
        return cls((parsed(written), parsed(wanted)), (arrays[0], arrays[1]))

    def decoded(self, block: bytes, count: int) -> Iterator[dict[str, Any]]:
        """The records of an unpacked block."""
        import fastavro

        if len(block) <= _SMALL_BLOCK and count:
            stream = io.BytesIO(_long_bytes(count) + block + b"\0")
            found: Any = fastavro.schemaless_reader(stream, *self.array)
            if len(found) != count or stream.read(1):
                raise ValueError("a block has more than its records")
            yield from found
            return
        stream = io.BytesIO(block)
        for _ in range(count):
            record: Any = fastavro.schemaless_reader(stream, *self.record)
            yield record


def _unpacked(codec: str, packed: bytes) -> bytes:
    if codec == "null":
        return packed
    if codec == "deflate":
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        block, complete = inflate.decompress(packed, MAX_BLOCK), inflate.eof
    elif codec == "zstandard":
        from backports import zstd

        frame = zstd.ZstdDecompressor()
        block, complete = frame.decompress(packed, MAX_BLOCK), frame.eof
    else:
        raise NotSupportedError(
            f"Manifests that are compressed with {codec!r} are not read.",
            "Let writers of the table compress its manifests with zstd or deflate.",
        )
    if not complete:
        raise ValueError(f"a block is cut off, or larger than {MAX_BLOCK} bytes")
    return block


def _long(source: io.BytesIO) -> int:
    """A number in Avro's variable-length zig-zag form."""
    value = 0
    for shift in range(0, 70, 7):
        byte = source.read(1)
        if not byte:
            raise EOFError("the file is cut off")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number is too long")


def _long_bytes(value: int) -> bytes:
    """A number that is not negative in that form."""
    rest, found = value << 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _pruned(schema: Any, fields: Fields) -> Any:
    """The schema of records without the fields that nobody asked for."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its schema is not that of a record")
    kept = []
    for field in schema["fields"]:
        if field["name"] in fields:
            below = fields[field["name"]]
            kept.append({**field, "type": _pruned(field["type"], below)} if below else field)
    return {**schema, "fields": kept}


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
    raise ValueError("its schema is none")


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
