"""Avro files with Spark's codecs, which pyarrow unpacks. Imported by executors."""

from __future__ import annotations

import io
import zlib
from typing import Final

import pyarrow as pa

from spark_jobs.formats.avro.container import AvroFile, Stream

# The largest block of a manifest, unpacked.
MAX_BLOCK: Final = 256 * 1024 * 1024
_READ_BYTES: Final = 16 * 1024 * 1024


def open_avro(stream: Stream, most_bytes: int) -> AvroFile:
    """A file, read from its start; raises as ``AvroFile``."""
    return AvroFile(stream, most_bytes, {"snappy": _unsnapped, "zstandard": _unpacked_zstandard})


def open_manifest(content: bytes) -> AvroFile:
    """A file of a table's metadata, from memory; raises as ``AvroFile``."""
    return open_avro(io.BytesIO(content), MAX_BLOCK)


def _unsnapped(data: bytes, most_bytes: int) -> bytes:
    """Decompress Snappy's raw format, which begins with the size, and verify its checksum."""
    size, shift = 0, 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > most_bytes:
        raise ValueError("a block is too large")
    decompressed = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    if zlib.crc32(decompressed) != int.from_bytes(data[-4:], "big"):
        raise ValueError("the checksum is another one")
    return bytes(decompressed)


def _unpacked_zstandard(data: bytes, most_bytes: int) -> bytes:
    parts, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while part := stream.read(_READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > most_bytes:
                raise ValueError("a block is too large")
    return b"".join(parts)
