"""Encodes values as Parquet stores them: PLAIN, and the RLE/bit-packing hybrid for integers.

Follows "Run Length Encoding / Bit-Packing Hybrid" in ``Encodings.md`` of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.column_codec import read_pages
from spark_jobs.datafiles.parquet.footer import ElementField, MetaField, number
from spark_jobs.datafiles.parquet.thrift import I32, Struct, i32, i64

_UNCOMPRESSED = 0
_DATA_PAGE = 0
_Integers = npt.NDArray[Any]
_GROUP = 8
_WORD = 64
# Values packed at a time, so that intermediate arrays stay in the processor's cache.
_BLOCK = 64 * 1024
# With fewer than one run per this many values, runs are shorter than packed bits and fast to write.
_VALUES_PER_RUN = 64


def decoded(element: Struct, body: bytes, count: int) -> pa.Array:
    """The ``count`` values in a PLAIN page's ``body``, as the Arrow type of leaf ``element``."""
    header = thrift.serialize(
        {
            1: i32(_DATA_PAGE),
            2: i32(len(body)),
            3: i32(len(body)),
            5: thrift.struct(
                {
                    1: i32(count),
                    2: i32(footers.PLAIN),
                    3: i32(footers.RLE),
                    4: i32(footers.RLE),
                }
            ),
        }
    )
    page = header + body
    meta: Struct = {
        MetaField.TYPE: element[ElementField.TYPE],
        MetaField.ENCODINGS: thrift.list_of(I32, [footers.PLAIN]),
        MetaField.PATH: thrift.list_of(thrift.BINARY, [element[ElementField.NAME].data]),
        MetaField.CODEC: i32(_UNCOMPRESSED),
        MetaField.NUM_VALUES: i64(count),
        MetaField.UNCOMPRESSED_SIZE: i64(len(page)),
        MetaField.COMPRESSED_SIZE: i64(len(page)),
        MetaField.DATA_PAGE: i64(len(footers.MAGIC)),
    }
    required = {**element, ElementField.REPETITION: i32(footers.REQUIRED)}
    footer = footers.single_column_footer((required,), [meta], count, None)
    column = read_pages(pa.py_buffer(footers.MAGIC + page), footer)
    return pa.concat_arrays(column.chunks)


def joined(element: Struct, values: Sequence[bytes]) -> bytes:
    """The body of a PLAIN page of ``values``, each encoded as in statistics: without its length.

    Not for booleans.
    """
    if number(element, ElementField.TYPE) != footers.BYTE_ARRAY:
        return b"".join(values)
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def encode_hybrid(values: _Integers, width: int) -> bytes:
    """``values``, each from 0 to ``2**width - 1``, as RLE runs or as one bit-packed run."""
    if len(values) == 0:
        return b""
    changes = values[1:] != values[:-1]
    if np.count_nonzero(changes) < len(values) // _VALUES_PER_RUN:
        return _runs(values, np.flatnonzero(changes) + 1, width)
    groups = -(-len(values) // _GROUP)
    return varint(groups << 1 | 1) + bit_packed(values, width)


def repeated(value: int, count: int, width: int) -> bytes:
    """One RLE run: ``count`` times ``value``."""
    return varint(count << 1) + value.to_bytes(-(-width // 8), "little")


def bit_packed(values: _Integers, width: int) -> bytes:
    """``values`` in ``width`` bits each (at most 32), least significant bit first.

    The last group of eight is padded with zeros.
    """
    blocks = (values[i : i + _BLOCK] for i in range(0, len(values), _BLOCK))
    return b"".join(_bit_packed_block(block, width) for block in blocks)


def _bit_packed_block(values: _Integers, width: int) -> bytes:
    groups = -(-len(values) // _GROUP)
    size = 8 if width <= 8 else 16 if width <= 16 else 32
    padded = np.zeros(groups * _GROUP, dtype=f"<u{size // 8}")
    padded[: len(values)] = values
    pieces, bits = _paired(padded, size, width)
    in_group = len(pieces) // groups
    by_place = pieces.reshape(groups, in_group).T
    words = np.zeros((-(-_GROUP * width // _WORD), groups), dtype="<u8")
    for place in range(in_group):
        word, shift = divmod(place * bits, _WORD)
        words[word] |= by_place[place] << np.uint64(shift)
        if shift + bits > _WORD:
            words[word + 1] |= by_place[place] >> np.uint64(_WORD - shift)
    as_bytes = np.ascontiguousarray(words.T).view(np.uint8)
    return as_bytes[:, :width].tobytes()


def _paired(values: _Integers, size: int, bits: int) -> tuple[_Integers, int]:
    """Numbers of a word each, in which several values stand side by side, and the bits they take.

    ``values`` are of ``size`` bits each, of which ``bits`` are used. Two neighbours are read as one
    number of twice the size, and its halves moved together, until a number is as long as a word.
    """
    while size < _WORD:
        pairs = values.view(f"<u{size // 4}")
        kind = pairs.dtype.type
        values = pairs & kind((1 << size) - 1) | pairs >> kind(size) << kind(bits)
        size, bits = 2 * size, 2 * bits
    return values, bits


def varint(number: int) -> bytes:
    """An unsigned integer as an unsigned LEB128 varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _runs(values: _Integers, starts: _Integers, width: int) -> bytes:
    bounds = [0, *starts.tolist(), len(values)]
    first = values[bounds[:-1]].tolist()
    counts = np.diff(bounds).tolist()
    return b"".join(repeated(v, n, width) for v, n in zip(first, counts, strict=True))
