"""Blocks of JSON lines that pyarrow's parser reads correctly. Imported by executors.

pyarrow gets only blocks with one object per line, and only names and types that are known in
advance. It accepts ``null`` as a record and does not stop at line ends, so its records are counted.
Deep nesting that it does not expect crashes it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from spark_jobs.landing.blocks import count_lines
from spark_jobs.landing.json_records import Members, NotJsonError, Number, decoded
from spark_jobs.landing.records import Column

_BLANK: Final = b" \t\r\n"
# As DECIMAL, Arrow reads "1e0x1" as 10 and crashes at 1e-2000000000; an escape may hide these.
_MISREAD_DECIMAL: Final = re.compile(rb"[eE]-[0-9]|[eE][+-]?0[xX]|\\u00[2-7][0-9a-fA-F]")
_MISREAD_MARKS: Final = (b"e-", b"E-", b"0x", b"0X", b"\\u")
_MOST_DIGITS: Final = 38
_SAMPLES: Final = 32
_MAX_DEPTH: Final = 16


class Doubt(Exception):  # noqa: N818 - it says what there is
    """A block is not plain enough for both parsers to read it the same way for certain."""


class LineBlock(NamedTuple):
    """Objects, one per line; ``body`` begins with the first, ``lines`` lines end before it."""

    body: bytes
    lines: int
    records: int

    def raw(self) -> list[bytes]:
        """The bytes of each record."""
        return self.body.splitlines()


class Columns(NamedTuple):
    """The wanted columns, None for those that do not occur, and the names seen in the file."""

    found: list[pa.Array | None]
    seen: frozenset[str]


def line_block(data: bytes) -> LineBlock | None:
    """``data`` as one object per line; None if it is not, or not for certain."""
    body = data.strip(_BLANK)
    breaks = body.count(b"\n")
    if not (body.startswith(b"{") and body.endswith(b"}")):
        return None
    if breaks and breaks != body.count(b"}\n{") + body.count(b"}\r\n{"):
        return None
    if b"\r" in body and body.count(b"\r") != body.count(b"\r\n"):
        return None
    if not _is_utf8(body):
        return None
    before = data[: data.index(b"{")]
    return LineBlock(body, count_lines(before), breaks + 1)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32))
    texts = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def is_regular(kind: pa.DataType) -> bool:
    """Whether Arrow reads a type directly from JSON, or as texts that are converted afterwards."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale < _MOST_DIGITS)
    return pa.types.is_temporal(kind) or pa.types.is_binary(kind) or _is_direct(kind)


def _is_direct(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return bool(kind.value_field.nullable) and _is_direct(kind.value_type)
    if pa.types.is_struct(kind):
        return all(each.nullable and _is_direct(each.type) for each in kind)
    if pa.types.is_decimal(kind):
        return bool(kind.precision + kind.scale <= _MOST_DIGITS)
    return not (pa.types.is_nested(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind))


def read_columns(block: LineBlock, wanted: Sequence[Column], seen: frozenset[str]) -> Columns:
    """The wanted columns, each of its own kind or as texts that hold its values.

    ``seen`` are names of wanted columns that the file is known to have.

    Raises:
        Doubt: the block must be read record by record.
    """
    shapes = _sample(block)
    spelled = _spelled(wanted, [*shapes, *sorted(seen - shapes.keys())])
    explicit = dict(shapes)
    for column in wanted:
        if column.name in spelled:
            name = spelled[column.name]
            explicit[name] = _read_as(column.kind, shapes.get(name))
    missing = {each.name: _read_as(each.kind, None) for each in wanted if each.name not in spelled}
    _require_few_cells(block, explicit | missing)
    if any(_has_decimal(column.kind) for column in wanted):
        _require_plain_decimals(block.body)
    try:
        table = _parsed(block, explicit)
    except pa.ArrowInvalid as error:
        if not missing:
            raise Doubt from error
        table = _parsed_or_doubt(block, explicit | missing)
        spelled |= _occurring(table, missing)
    if table.num_rows != block.records:
        raise Doubt
    names = [spelled.get(column.name) for column in wanted]
    arrays = [
        None if name is None else _as_declared(pa.concat_arrays(table[name].chunks), column.kind)
        for name, column in zip(names, wanted, strict=True)
    ]
    others = [table[name] for name in table.column_names if name not in names]
    if not all(_is_in_range(each) for each in (*others, *arrays) if each is not None):
        raise Doubt
    return Columns(arrays, frozenset([*shapes, *(name for name in names if name is not None)]))


def _sample(block: LineBlock) -> dict[str, pa.DataType]:
    """The names and types in a few evenly spaced records; the type is null where all are null."""
    body = block.body
    starts = {0}
    for index in range(1, _SAMPLES):
        starts.add(body.find(b"\n", len(body) * index // _SAMPLES) + 1)
    merged: pa.DataType = pa.null()
    for start in starts:
        end = body.find(b"\n", start)
        try:
            value, _ = decoded(body[start : end if end >= 0 else None].decode("utf-8"), 0)
            merged = _merged(merged, _shape(value, 0))
        except (NotJsonError, UnicodeEncodeError) as error:
            raise Doubt from error
    return {field.name: field.type for field in merged}


def _shape(value: Any, depth: int) -> pa.DataType:
    if depth > _MAX_DEPTH:
        raise Doubt
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, Number):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, Members):
        fields = {name: _shape(each, depth + 1) for name, each in value}
        if len(fields) != len(value):
            raise Doubt
        return pa.struct(list(fields.items()))
    merged: pa.DataType = pa.null()
    for each in value:
        merged = _merged(merged, _shape(each, depth + 1))
    return pa.list_(merged)


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    raise Doubt


def _spelled(wanted: Sequence[Column], names: Sequence[str]) -> dict[str, str]:
    """The spelling in the file of the wanted columns that are known to occur."""
    spellings = {}
    for column in wanted:
        same = [name for name in names if name.lower() == column.name.lower()]
        if len(same) > 1:
            raise Doubt
        if same:
            spellings[column.name] = same[0]
    return spellings


def _read_as(kind: pa.DataType, shape: pa.DataType | None) -> pa.DataType:
    """The type to read a wanted column as; string where its values are written as strings."""
    is_text = shape is not None and pa.types.is_string(shape) and not pa.types.is_nested(kind)
    if is_text:
        return pa.string()
    if pa.types.is_decimal(kind):
        # Zeros added up to the scale must not push the digits beyond the maximum.
        return pa.decimal128(min(kind.precision, _MOST_DIGITS - kind.scale), kind.scale)
    return kind if _is_direct(kind) else pa.string()


def _require_few_cells(block: LineBlock, schema: Mapping[str, pa.DataType]) -> None:
    """Refuse many names times many records: Arrow allocates every name for every record."""
    if block.records * sum(map(_leaves, schema.values())) > 2 * max(len(block.body), 4096):
        raise Doubt


def _leaves(kind: pa.DataType) -> int:
    return 1 + sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))


def _parsed(block: LineBlock, schema: Mapping[str, pa.DataType]) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(block.body),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(block.body) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema(list(schema.items())),
            newlines_in_values=False,
            unexpected_field_behavior="error",
        ),
    )


def _parsed_or_doubt(block: LineBlock, schema: Mapping[str, pa.DataType]) -> pa.Table:
    try:
        return _parsed(block, schema)
    except pa.ArrowInvalid as error:
        raise Doubt from error


def _occurring(table: pa.Table, missing: Mapping[str, pa.DataType]) -> dict[str, str]:
    """Which of the ``missing`` columns occur, given that the block needs at least one of them."""
    occurring = {name: name for name in missing if table[name].null_count < table.num_rows}
    if len(missing) == 1:
        return {name: name for name in missing}
    if len(occurring) < len(missing):
        # A column of NULLs may occur as null or not at all.
        raise Doubt
    return occurring


def _as_declared(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A DECIMAL that was read with fewer digits, as its declared type."""
    if not pa.types.is_decimal(array.type) or array.type == kind:
        return array
    return pa.Array.from_buffers(kind, len(array), array.buffers(), offset=array.offset)


def _is_in_range(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether a column has neither infinities nor DECIMALs with more digits than their type.

    Arrow reads a DOUBLE that is too large as infinity, and accepts such DECIMALs.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        return bool(pc.all(pc.is_finite(column), min_count=0).as_py())
    if pa.types.is_decimal(kind):
        largest = pc.max(pc.abs(column)).as_py()
        return largest is None or bool(largest < 10 ** (kind.precision - kind.scale))
    if pa.types.is_struct(kind):
        return all(map(_is_in_range, column.flatten()))
    return not pa.types.is_list(kind) or _is_in_range(pc.list_flatten(column))


def _require_plain_decimals(body: bytes) -> None:
    has_mark = any(_has_pair(body, mark) for mark in _MISREAD_MARKS)
    if has_mark and _MISREAD_DECIMAL.search(body):
        raise Doubt


def _has_pair(data: bytes, pair: bytes) -> bool:
    """Like ``pair in data``, but several times faster."""
    wanted = int.from_bytes(pair, sys.byteorder)
    return any(
        bool((np.frombuffer(data, np.uint16, (len(data) - at) // 2, at) == wanted).any())
        for at in (0, 1)
    )


def _has_decimal(kind: pa.DataType) -> bool:
    parts = (kind.field(i).type for i in range(kind.num_fields))
    return bool(pa.types.is_decimal(kind)) or any(map(_has_decimal, parts))
