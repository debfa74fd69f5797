"""Thrift's compact protocol, as far as parquet footers use it.

Follows the specification ``thrift-compact-protocol.md`` of Apache Thrift. A structure is a mapping
from field id to ``Value``; its fields need not be known, so that fields of newer writers survive a
round trip.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

TRUE: Final = 1
FALSE: Final = 2
_BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
_DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12

_INTEGERS: Final = (I16, I32, I64)
_LONG_LIST: Final = 15
# Statistics make page headers long, but writers truncate them far below this size.
_HEADER_LIMIT: Final = 64 * 1024


class ThriftError(ValueError):
    """The bytes are not a structure of supported types."""


class Value(NamedTuple):
    """A value with its wire type.

    ``data``: None for the two booleans, int for integers, bytes for binaries, doubles and single
    bytes, ``Elements`` for lists, ``Struct`` for structures.
    """

    kind: int
    data: Any


class Elements(NamedTuple):
    """A list: the elements' type and their data."""

    kind: int
    items: list[Any]


Struct = dict[int, Value]


def i32(number: int) -> Value:
    """A 32-bit integer."""
    return Value(I32, number)


def i64(number: int) -> Value:
    """A 64-bit integer."""
    return Value(I64, number)


def binary(data: bytes) -> Value:
    """Bytes, or text in UTF-8."""
    return Value(BINARY, data)


def struct(fields: Struct) -> Value:
    """A structure."""
    return Value(STRUCT, fields)


def list_of(kind: int, items: list[Any]) -> Value:
    """A list of elements of one type."""
    return Value(LIST, Elements(kind, items))


def parse(data: bytes) -> tuple[Struct, int]:
    """The structure at the start of ``data``, and the number of bytes it takes.

    Raises:
        ThriftError: the bytes are not a structure of supported types.
    """
    reader = _Reader(data)
    try:
        fields = reader.struct()
    except (IndexError, RecursionError):
        raise ThriftError("the structure does not end") from None
    return fields, reader.position


def parse_prefix(data: memoryview | bytes) -> tuple[Struct, int]:
    """Like ``parse``, for a short structure that other bytes follow: the header of a page."""
    return parse(bytes(data[:_HEADER_LIMIT]))


def serialize(fields: Struct) -> bytes:
    """The bytes of a structure."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        field_id = 0
        while True:
            header = self._byte()
            if header == 0:
                return fields
            kind, delta = header & 15, header >> 4
            field_id = field_id + delta if delta else self._zigzag()
            fields[field_id] = Value(kind, self._value(kind))

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct()
        if kind == LIST:
            return self._list()
        if kind in (TRUE, FALSE):
            return None
        if kind in (_BYTE, _DOUBLE):
            return self._take(1 if kind == _BYTE else 8)
        raise ThriftError(f"a value of type {kind}")

    def _list(self) -> Elements:
        header = self._byte()
        kind, length = header & 15, header >> 4
        if length == _LONG_LIST:
            length = self._varint()
        # In a list, a boolean takes a byte, since it has no field header that could hold it.
        each = _BYTE if kind in (TRUE, FALSE) else kind
        return Elements(kind, [self._value(each) for _ in range(length)])

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self._data):
            raise IndexError
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._data[self.position]
            self.position += 1
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for field_id in sorted(fields):
        kind, data = fields[field_id]
        delta = field_id - before
        if 0 < delta < 16:
            out.append(delta << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, field_id)
        _write_value(out, kind, data)
        before = field_id
    out.append(0)


def _write_value(out: bytearray, kind: int, data: Any) -> None:
    if kind in _INTEGERS:
        _write_zigzag(out, data)
    elif kind == BINARY:
        _write_varint(out, len(data))
        out += data
    elif kind == STRUCT:
        _write_struct(out, data)
    elif kind == LIST:
        _write_list(out, data)
    elif data is not None:
        out += data


def _write_list(out: bytearray, elements: Elements) -> None:
    kind, items = elements
    if len(items) < _LONG_LIST:
        out.append(len(items) << 4 | kind)
    else:
        out.append(_LONG_LIST << 4 | kind)
        _write_varint(out, len(items))
    for item in items:
        _write_value(out, kind, item)


def _write_zigzag(out: bytearray, number: int) -> None:
    _write_varint(out, number << 1 if number >= 0 else ~number << 1 | 1)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
