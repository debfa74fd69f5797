"""Avro object container files: the header's schema, and decompressed blocks of records.

Imported by executors. Follows the Avro specification, 1.11.1. Codecs come from Python and pyarrow,
so that files with Spark's codecs (snappy, deflate, zstandard) need no other library. A file of a
few bytes may claim any size; claims are accepted up to a limit.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from spark_jobs.errors import NotSupportedError

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_CODECS: Final = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_READ_BYTES: Final = 16 * 1024 * 1024
# Records may have no bytes at all; a block may claim this many of them.
_MOST_EMPTY: Final = 1_000_000


class Stream(Protocol):
    """What a file is read from."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; empty only at the end."""
        ...


class AvroDamagedError(ValueError):
    """A file is not an Avro file, or is incomplete or damaged; the message says why."""


class AvroBlock(NamedTuple):
    """The number of some records, and their encoded bytes."""

    records: int
    data: bytes


class AvroFile:
    """A file, read from its start; ``schema`` is the writer's schema, as parsed JSON.

    ``metadata`` is all that its header says, by name.
    """

    def __init__(self, stream: Stream, most_bytes: int) -> None:
        """Read the header; no part of it and no block may have more than ``most_bytes``.

        Raises:
            AvroDamagedError: there is no valid header.
            NotSupportedError: the codec is unknown.
        """
        self._stream, self._most_bytes = stream, most_bytes
        if self._read(len(_MAGIC)) != _MAGIC:
            raise AvroDamagedError("it does not begin as Avro files do")
        self.metadata = metadata = self._read_metadata()
        self._sync = self._read(_SYNC_BYTES)
        self._codec = metadata.get("avro.codec", b"null").decode("utf-8", "backslashreplace")
        if self._codec not in _CODECS:
            raise NotSupportedError(
                f"Avro files with the codec {self._codec} cannot be read.",
                f"Write them with one of: {', '.join(_CODECS)}.",
            )
        try:
            self.schema: Any = json.loads(metadata["avro.schema"])
        except (KeyError, ValueError, RecursionError):
            raise AvroDamagedError("its header has no schema") from None

    def blocks(self) -> Iterator[AvroBlock]:
        """The blocks of the file.

        Raises:
            AvroDamagedError: a block is damaged or incomplete.
        """
        while first := self._stream.read(1):
            count = self._long(first)
            data = self._unpacked(self._read(self._long()))
            if self._read(_SYNC_BYTES) != self._sync:
                raise AvroDamagedError("a block does not end where it should")
            if not 0 <= count <= max(len(data), _MOST_EMPTY):
                raise AvroDamagedError("a block has not as many records as it says")
            yield AvroBlock(count, data)

    def _read_metadata(self) -> dict[str, bytes]:
        found = {}
        while count := self._long():
            if count < 0:
                self._long()
            for _ in range(abs(count)):
                name = self._read(self._long()).decode("utf-8", "backslashreplace")
                found[name] = self._read(self._long())
        return found

    def _long(self, first: bytes = b"") -> int:
        value, shift = 0, 0
        byte = first or self._read(1)
        while True:
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise AvroDamagedError("it has a number of more than 64 bits")
            byte = self._read(1)

    def _read(self, size: int) -> bytes:
        if not 0 <= size <= self._most_bytes:
            raise AvroDamagedError(f"a part of it has {size} bytes, by its own account")
        parts = []
        while size:
            part = self._stream.read(min(size, _READ_BYTES))
            if not part:
                raise AvroDamagedError("it is cut off")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _unpacked(self, data: bytes) -> bytes:
        try:
            if self._codec == "null":
                return data
            if self._codec == "snappy":
                return _unsnapped(data, self._most_bytes)
            if self._codec == "zstandard":
                return _unpacked_zstandard(data, self._most_bytes)
            return _unpacked_by_python(self._codec, data, self._most_bytes)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            raise AvroDamagedError(
                f"a block cannot be decompressed, or has more than {self._most_bytes} bytes"
            ) from None


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
    found = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    if zlib.crc32(found) != int.from_bytes(data[-4:], "big"):
        raise ValueError("the checksum is another one")
    return bytes(found)


def _unpacked_zstandard(data: bytes, most_bytes: int) -> bytes:
    parts, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while part := stream.read(_READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > most_bytes:
                raise ValueError("a block is too large")
    return b"".join(parts)


def _unpacked_by_python(codec: str, data: bytes, most_bytes: int) -> bytes:
    unpacker: Any = {
        "deflate": lambda: zlib.decompressobj(-zlib.MAX_WBITS),
        "bzip2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }[codec]()
    found: bytes = unpacker.decompress(data, most_bytes)
    # Trailing bytes are ignored: fastavro leaves part of a checksum after deflated data.
    if not unpacker.eof:
        raise ValueError("the data is not whole")
    return found
