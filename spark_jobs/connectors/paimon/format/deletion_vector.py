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
from spark_jobs.datafiles.roaring import (
    BrokenBitmapError,
    bitmap_bytes,
    bitmap_positions,
    framed,
)
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

_MAGIC = struct.pack(">I", 1581511376)
# 64-bit vectors are Iceberg's, whose magic number is little-endian.
_MAGIC_64 = struct.pack("<I", 1681511377)
_CRC = struct.Struct(">I")


def decode(data: bytes, source: str, cardinality: int | None = None) -> Positions:
    """The deleted positions, in ascending order, of the vector ``data``.

    ``source`` identifies the vector in errors. ``cardinality`` is the number of positions that the
    vector must have, if known; never more than these are decoded.

    Raises:
        NotSupportedError: it is a 64-bit vector.
        CatalogError: METADATA_UNREADABLE: the bytes are not exactly one intact vector.
    """
    if data[4:8] == _MAGIC_64:
        raise NotSupportedError(
            f"{source} is a 64-bit deletion vector (deletion-vectors.bitmap64).",
            "Rewrite the table's files without it, with deletion-vectors.bitmap64=false.",
        )
    try:
        return bitmap_positions(framed(data, _MAGIC), cardinality)
    except BrokenBitmapError as error:
        raise _damaged(source, str(error)) from None


def encode(positions: Positions) -> bytes:
    """The vector of ``positions``, which are ascending, distinct and below ``2**32``."""
    body = _MAGIC + bitmap_bytes(positions)
    return b"".join((len(body).to_bytes(4, "big"), body, _CRC.pack(zlib.crc32(body))))


def _damaged(source: str, reason: str) -> CatalogError:
    return CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"The deletion vector {source} is damaged: {reason}.",
        "Restore the index file, or roll the table back to a snapshot before it.",
    )
