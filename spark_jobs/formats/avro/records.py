"""Decodes records of small Avro files without an Avro library. Imported by executors.

Follows the Avro 1.11 specification. A block may claim any number of records; records and items of
zero bytes are refused, so that time and memory depend on the actual size of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from spark_jobs.formats.avro.container import AvroFile

_LONGEST_NUMBER: Final = 63

# Takes the bytes of a block and a position in them; returns a value and the position after it.
Decoder = Callable[[bytes, int], tuple[Any, int]]


def records(file: AvroFile) -> Iterator[Any]:
    """The records of a file, in order.

    Raises:
        ValueError and whatever decoding raises: the file is damaged or hostile.
    """
    decode = _decoder(file.schema, {})
    for block in file.blocks():
        yield from _items(decode, block.records, block.data, 0)[0]


def _items(decode: Decoder, count: int, data: bytes, position: int) -> tuple[list[Any], int]:
    """``count`` consecutive values, each of at least one byte, and the position after them."""
    items = []
    for _ in range(count):
        item, end = decode(data, position)
        if end == position:
            raise ValueError("a record or an item takes no room")
        items.append(item)
        position = end
    return items, position


def _decoder(schema: Any, names: dict[str, Decoder]) -> Decoder:
    """The decoder of values of a schema; ``names`` are the named types so far, none recursive."""
    if isinstance(schema, list):
        return _union([_decoder(each, names) for each in schema])
    if isinstance(schema, str):
        return _PRIMITIVES.get(schema) or names[schema]
    match schema["type"]:
        case "record":
            decode = _record({f["name"]: _decoder(f["type"], names) for f in schema["fields"]})
        case "array":
            return _array(_decoder(schema["items"], names))
        case "map":
            return _map(_decoder(schema["values"], names))
        case "enum":
            decode = _enum(schema["symbols"])
        case "fixed":
            decode = _fixed(schema["size"])
        case kind:
            return _decoder(kind, names)
    names[schema["name"]] = decode
    names[f"{schema.get('namespace', '')}.{schema['name']}"] = decode
    return decode


def _record(fields: Mapping[str, Decoder]) -> Decoder:
    named = tuple(fields.items())

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        record = {}
        for name, field in named:
            record[name], position = field(data, position)
        return record, position

    return decode


def _union(members: list[Decoder]) -> Decoder:
    def decode(data: bytes, position: int) -> tuple[Any, int]:
        number, position = _long(data, position)
        if number < 0:
            raise ValueError("a union has no such member")
        return members[number](data, position)

    return decode


def _array(item: Decoder) -> Decoder:
    def decode(data: bytes, position: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        while True:
            count, position = _long(data, position)
            if not count:
                return values, position
            if count < 0:  # the size of the items in bytes follows
                count, position = -count, _long(data, position)[1]
            items, position = _items(item, count, data, position)
            values += items

    return decode


def _map(value: Decoder) -> Decoder:
    pairs = _array(_record({"key": _string, "value": value}))

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        items, position = pairs(data, position)
        return {each["key"]: each["value"] for each in items}, position

    return decode


def _enum(symbols: list[str]) -> Decoder:
    def decode(data: bytes, position: int) -> tuple[str, int]:
        number, position = _long(data, position)
        if number < 0:
            raise ValueError("an enum has no such symbol")
        return symbols[number], position

    return decode


def _fixed(size: int) -> Decoder:
    return lambda data, position: _slice(data, position, size)


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    """A variable-length number, still zigzag-encoded."""
    byte = data[position]
    value, shift = byte & 0x7F, 0
    while byte > 0x7F:
        position, shift = position + 1, shift + 7
        if shift > _LONGEST_NUMBER:
            raise ValueError("a number is too long")
        byte = data[position]
        value |= (byte & 0x7F) << shift
    return value, position + 1


def _long(data: bytes, position: int) -> tuple[int, int]:
    value = data[position]
    position += 1
    if value > 0x7F:
        value, position = _unsigned(data, position - 1)
    return (value >> 1) ^ -(value & 1), position


def _slice(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if size < 0 or end > len(data):
        raise ValueError("a value is cut off")
    return data[position:end], end


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _long(data, position)
    return _slice(data, position, size)


def _string(data: bytes, position: int) -> tuple[str, int]:
    value, position = _bytes(data, position)
    return value.decode(), position


def _packed_number(layout: str) -> Decoder:
    form = struct.Struct(layout)
    return lambda data, position: (form.unpack_from(data, position)[0], position + form.size)


_PRIMITIVES: Final[Mapping[str, Decoder]] = {
    "null": lambda _, position: (None, position),
    "boolean": lambda data, position: (data[position] != 0, position + 1),
    "int": _long,
    "long": _long,
    "float": _packed_number("<f"),
    "double": _packed_number("<d"),
    "bytes": _bytes,
    "string": _string,
}
