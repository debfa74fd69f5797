"""Avro object container files: the header's schema, and decompressed blocks of records.

Imported by executors and by Airflow's processes. Follows the Avro specification, 1.11.1. Codecs
that Python does not have come from the caller. A file of a few bytes may claim any size; claims are
accepted up to a limit.
"""

from __future__ import annotations

import bz2
import functools
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from spark_jobs.errors import NotSupportedError

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_READ_BYTES: Final = 16 * 1024 * 1024
# Records may have no bytes at all; a block may claim this many of them.
_MOST_EMPTY: Final = 1_000_000


# Unpacks a block of at most so many bytes. Raises ValueError or OSError if it cannot, or has more.
Unpack = Callable[[bytes, int], bytes]


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
    """A file, read from its start; ``metadata`` is all that its header says, by name."""

    def __init__(self, stream: Stream, most_bytes: int, codecs: Mapping[str, Unpack]) -> None:
        """Read the header; no part of it and no block may have more than ``most_bytes``.

        ``codecs`` has those that Python lacks, by the names that Avro gives them.

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
        self._codecs = {**_OF_PYTHON, **codecs}
        if self._codec not in self._codecs:
            raise NotSupportedError(
                f"Avro files with the codec {self._codec} cannot be read.",
                f"Write them with one of: {', '.join(self._codecs)}.",
            )

    @functools.cached_property
    def schema(self) -> Any:
        """The writer's schema, as parsed JSON.

        Raises:
            AvroDamagedError: the header has none.
        """
        try:
            return json.loads(self.metadata["avro.schema"])
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
        metadata = {}
        while count := self._long():
            if count < 0:
                self._long()
            for _ in range(abs(count)):
                name = self._read(self._long()).decode("utf-8", "backslashreplace")
                metadata[name] = self._read(self._long())
        return metadata

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
            return self._codecs[self._codec](data, self._most_bytes)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            raise AvroDamagedError(
                f"a block cannot be decompressed, or has more than {self._most_bytes} bytes"
            ) from None


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _by(decompressor: Callable[[], _Decompressor]) -> Unpack:
    def unpack(data: bytes, most_bytes: int) -> bytes:
        unpacker = decompressor()
        found = unpacker.decompress(data, most_bytes)
        # Trailing bytes are ignored: fastavro leaves part of a checksum after deflated data.
        if not unpacker.eof:
            raise ValueError("the data is not whole")
        return found

    return unpack


_OF_PYTHON: Final[Mapping[str, Unpack]] = {
    "null": lambda data, _: data,
    "deflate": _by(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    "bzip2": _by(bz2.BZ2Decompressor),
    "xz": _by(lzma.LZMADecompressor),
}
