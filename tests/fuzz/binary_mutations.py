"""Hostile forms of Avro, parquet and index files that are intact as far as their framing goes."""

from __future__ import annotations

import io
import struct
import zlib
from random import Random
from typing import Any

import fastavro

from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.thrift import Elements, Value
from tests.fuzz.mutations import NUMBERS, TEXTS, damaged_bytes

_TRAILER = 8
# The constants of Paimon's 32-bit deletion vectors.
_LENGTH, _MAGIC = 4, 4


def hostile_avro(data: bytes, random: Random) -> bytes:
    """An Avro file with one value of one record replaced by another of its type, or a bomb."""
    reader = fastavro.reader(io.BytesIO(data))
    schema, records = reader.writer_schema, list(reader)
    if random.randrange(12) == 0:
        return _avro_bomb(random)
    if records:
        if random.randrange(10) == 0:
            records = records * random.choice((2, 50))
        else:
            _change_record(random.choice(records), random)
    out = io.BytesIO()
    try:
        fastavro.writer(out, fastavro.parse_schema(schema), records, codec="null")
    except Exception:  # noqa: BLE001 - the value is not one of the schema
        return damaged_bytes(data, random)
    return out.getvalue()


def hostile_parquet(data: bytes, random: Random) -> bytes:
    """A parquet file whose footer lies: about its length, or in one of its fields."""
    length = int.from_bytes(data[-_TRAILER:-4], "little")
    body, raw = data[: -_TRAILER - length], data[-_TRAILER - length : -_TRAILER]
    match random.randrange(5):
        case 0:
            lie = random.choice((0, 1, length - 1, length + 1, len(data), 2**31 - 1, 2**32 - 1))
            return data[:-_TRAILER] + lie.to_bytes(4, "little") + data[-4:]
        case 1:
            raw = damaged_bytes(raw, random)
        case 2:
            raw = _thrift_bomb(random)
        case _:
            fields, _ = thrift.parse(raw)
            places: list[tuple[Any, Any]] = []
            _thrift_places(fields, places)
            holder, key = random.choice(places)
            holder[key] = _other_value(holder[key], random)
            raw = thrift.serialize(fields)
    return body + raw + len(raw).to_bytes(4, "little") + data[-4:]


def hostile_index(data: bytes, random: Random) -> bytes:
    """A file with one deletion vector whose bitmap is damaged but whose checksum is right."""
    length = int.from_bytes(data[1 : 1 + _LENGTH], "big")
    end = 1 + _LENGTH + length
    bitmap = damaged_bytes(data[1 + _LENGTH + _MAGIC : end], random)
    body = data[1 + _LENGTH : 1 + _LENGTH + _MAGIC] + bitmap
    head = struct.pack(">I", random.choice((len(body), length)))
    return data[:1] + head + body + struct.pack(">I", zlib.crc32(body)) + data[end + 4 :]


def _change_record(record: dict[str, Any], random: Random) -> None:
    holder, key = record, random.choice(list(record))
    while isinstance(holder[key], dict) and holder[key]:
        holder = holder[key]
        key = random.choice(list(holder))
    while isinstance(holder[key], list) and holder[key]:
        holder, key = holder[key], random.randrange(len(holder[key]))
        if isinstance(holder[key], dict):
            holder = holder[key]
            key = random.choice(list(holder))
    value = holder[key]
    if isinstance(value, bytes):
        holder[key] = damaged_bytes(value, random)
    elif isinstance(value, str) or (value is None and random.randrange(2)):
        holder[key] = random.choice(TEXTS)
    elif isinstance(value, int) or value is None:
        holder[key] = random.choice(NUMBERS)
    elif isinstance(value, list):
        holder[key] = [random.choice(TEXTS)]


def _avro_bomb(random: Random) -> bytes:
    """A few bytes that claim to be very many: items or bytes that take no room in the file."""
    nothing = random.choice(('"null"', '{"type":"fixed","name":"f","size":0}'))
    schema = f'{{"type":"array","items":{nothing}}}'
    if random.randrange(2):
        schema = '"bytes"'
    count = _long(2**40)
    block = count + (_long(0) if schema != '"bytes"' else b"abc")
    marker = b"0123456789abcdef"
    head = {"avro.schema": schema.encode(), "avro.codec": b"null"}
    out = b"Obj\x01" + _long(len(head))
    for name, value in head.items():
        out += _long(len(name)) + name.encode() + _long(len(value)) + value
    return out + _long(0) + marker + _long(1) + _long(len(block)) + block + marker


def _long(number: int) -> bytes:
    out = bytearray()
    zigzag = number << 1 if number >= 0 else ~number << 1 | 1
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _thrift_bomb(random: Random) -> bytes:
    match random.randrange(4):
        case 0:  # structures in structures without end
            return b"\x1c" * 100_000
        case 1:  # lists in lists
            return b"\x19" + b"\x19" * 100_000
        case 2:  # a list of 2**60 elements
            return b"\x29\xfc" + b"\xff" * 8 + b"\x0f"
        case _:  # an integer that does not end
            return b"\x15" + b"\xff" * 100_000


def _thrift_places(fields: dict[int, Value], places: list[tuple[Any, Any]]) -> None:
    for key, value in fields.items():
        places.append((fields, key))
        if value.kind == thrift.STRUCT:
            _thrift_places(value.data, places)
        elif value.kind == thrift.LIST and value.data.kind == thrift.STRUCT:
            for item in value.data.items:
                _thrift_places(item, places)


def _other_value(value: Value, random: Random) -> Value:
    if isinstance(value.data, int):
        near = (value.data + 1, value.data - 1, value.data * 2)
        return Value(value.kind, random.choice((*NUMBERS, *near)))
    if isinstance(value.data, bytes):
        return Value(value.kind, damaged_bytes(value.data, random))
    if isinstance(value.data, Elements):
        items = value.data.items
        changed = random.choice((items[:-1], items + items, [], items[::-1]))
        return Value(value.kind, Elements(value.data.kind, list(changed)))
    return Value(thrift.I32, random.choice(NUMBERS))
