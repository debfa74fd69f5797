"""The bytes of Paimon's 32-bit deletion vector of one data file.

Follows Paimon's ``BitmapDeletionVector``. A vector consists of, in this order,

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
# 64-bit vectors are Iceberg's, whose magic number is little-endian.
_MAGIC_64 = struct.unpack(">I", struct.pack("<I", 1681511377))[0]
_HEAD = struct.Struct(">II")
_CRC = struct.Struct(">I")


def decode(data: bytes, source: str, cardinality: int | None = None) -> Positions:
    """The deleted positions, in ascending order, of the vector ``data``.

    ``source`` identifies the vector in errors. ``cardinality`` is the number of positions that the
    vector must have, if known; never more than these are decoded.

    Raises:
        NotSupportedError: it is a 64-bit vector.
        CatalogError: METADATA_UNREADABLE: the bytes are not exactly one intact vector.
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
    """The vector of ``positions``, which are ascending, distinct and below ``2**32``."""
    body = _MAGIC.to_bytes(4, "big") + bitmap_bytes(positions)
    return b"".join((len(body).to_bytes(4, "big"), body, _CRC.pack(zlib.crc32(body))))


def _damaged(source: str, reason: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The deletion vector {source} is damaged: {reason}.",
        "Restore the index file, or roll the table back to a snapshot before it.",
    )
