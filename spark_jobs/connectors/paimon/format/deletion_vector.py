"""Paimon's 32-bit deletion vector of one data file, as bytes.

After ``BitmapDeletionVector`` of Apache Paimon. A vector is, in this order,

- 4 bytes, big-endian: the length of magic number and bitmap together,
- 4 bytes, big-endian: the magic number,
- a 32-bit Roaring bitmap, little-endian (``datafiles.roaring``),
- 4 bytes, big-endian: the CRC-32 of magic number and bitmap.
"""

from __future__ import annotations

import struct
import zlib

from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.roaring import BrokenBitmapError, bitmap_bytes, bitmap_positions
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

_MAGIC = 1581511376
# Vectors of 64 bits are Iceberg's, whose magic number is little-endian.
_MAGIC_64 = struct.unpack(">I", struct.pack("<I", 1681511377))[0]
_HEAD = struct.Struct(">II")
_CRC = struct.Struct(">I")


def decode(data: bytes, source: str, cardinality: int | None = None) -> Positions:
    """The deleted positions, ascending, of the one vector that ``data`` consists of.

    ``source`` names the vector in errors: the index file and the data file. ``cardinality`` is how
    many positions there must be, where that is known: no more are ever made.

    Raises:
        NotSupportedError: the vector is a 64-bit one.
        CatalogError: METADATA_UNREADABLE when the bytes are not exactly one intact vector.
    """
    if len(data) < _HEAD.size + _CRC.size:
        raise _damaged(source, f"{len(data)} bytes are too few")
    length, magic = _HEAD.unpack_from(data)
    if magic == _MAGIC_64:
        raise NotSupportedError(
            f"{source} is a 64-bit deletion vector (deletion-vectors.bitmap64).",
            "Rewrite the table's files without it, with deletion-vectors.bitmap64=false.",
        )
    if magic != _MAGIC:
        raise _damaged(source, f"its magic number is {magic}, not {_MAGIC}")
    present = len(data) - 4 - _CRC.size
    if length != present:
        raise _damaged(source, f"it says {length} bytes, but {present} are there")
    if zlib.crc32(data[4:-4]) != _CRC.unpack_from(data, len(data) - 4)[0]:
        raise _damaged(source, "its checksum is wrong")
    try:
        return bitmap_positions(memoryview(data)[_HEAD.size : -_CRC.size], cardinality)
    except BrokenBitmapError as error:
        raise _damaged(source, str(error)) from None


def encode(positions: Positions) -> bytes:
    """The vector of these positions, which are ascending, distinct and below ``2**32``."""
    body = _MAGIC.to_bytes(4, "big") + bitmap_bytes(positions)
    return b"".join((len(body).to_bytes(4, "big"), body, _CRC.pack(zlib.crc32(body))))


def _damaged(source: str, reason: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The deletion vector {source} is damaged: {reason}.",
        "Restore the index file, or roll the table back to a snapshot before it.",
    )
