"""The bytes of a landed file: decompressed, as UTF-8, without a byte order mark.

Imported by executors.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.files import FilePart

# Recognized by the file name's extension, as in Hadoop.
_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_UNKNOWN: Final = (".deflate", ".lz4", ".lzo", ".snappy", ".zip")
_BOM: Final = codecs.BOM_UTF8
_COUNTED: Final = 8 * 1024 * 1024


class Bytes(Protocol):
    """What blocks are read from."""

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; empty only at the end."""
        ...


class UndecodableError(ValueError):
    """A file is not in the encoding that its source names."""


@contextmanager
def opened(
    filesystem: pafs.FileSystem, path: str, encoding: str, start: int = 0
) -> Iterator[Bytes]:
    """The file from byte ``start`` on, which is 0 unless the file can be split.

    Raises:
        NotSupportedError: pyarrow does not read the codec.
        OSError: the file cannot be read.
    """
    codec = codec_of(path)
    if codec is None:
        with filesystem.open_input_file(path) as file:
            file.seek(start)
            yield _decoded(file, encoding, start)
        return
    if start:
        raise ValueError(f"{path} is compressed and has no parts")
    with (
        filesystem.open_input_stream(path, compression=None) as stream,
        pa.CompressedInputStream(stream, codec) as unpacked,
    ):
        yield _decoded(_Unpacked(filesystem, path, unpacked), encoding, start)


@contextmanager
def opened_part(filesystem: pafs.FileSystem, part: FilePart, encoding: str) -> Iterator[Bytes]:
    """The lines of a part of a splittable file, or a whole file; raises as ``opened``."""
    path = part.file.path
    with opened(filesystem, path, encoding, max(part.start - 1, 0)) as stream:
        is_whole = not part.start and part.end is None
        yield stream if is_whole else Lines(stream, part.start, part.end)


def lines_before(filesystem: pafs.FileSystem, part: FilePart) -> int:
    """How many lines of the file end before the first line of a part."""
    if not part.start:
        return 0
    count, before = 0, b""
    with filesystem.open_input_file(part.file.path) as file:
        while True:
            position = file.tell()
            data: bytes = file.read(_COUNTED)
            # A line that begins before the part does not belong to it.
            last = data.find(b"\n", max(part.start - 1 - position, 0))
            data = data if last < 0 else data[: last + 1]
            joined = before + data
            count += data.count(b"\n") + data.count(b"\r") - joined.count(b"\r\n")
            if last >= 0 or not data:
                return count
            before = data[-1:]


def codec_of(path: str) -> str | None:
    """The codec of a compressed file; None if it is not compressed.

    Raises:
        NotSupportedError: pyarrow does not read the codec.
    """
    lowered = path.lower()
    for ending in _UNKNOWN:
        if lowered.endswith(ending):
            raise NotSupportedError(
                f"{path}: files that end in {ending} cannot be read.",
                f"Compress with one of: {', '.join(_CODECS)}.",
            )
    return next((name for ending, name in _CODECS.items() if lowered.endswith(ending)), None)


def mark_bytes(stream: Bytes) -> int:
    """How many bytes of a byte order mark an opened file skipped; known after the first read."""
    return stream.mark_bytes if isinstance(stream, _WithoutMark) else 0


def is_utf8(encoding: str) -> bool:
    """Whether texts in ``encoding`` are UTF-8 already."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _decoded(stream: Bytes, encoding: str, start: int) -> Bytes:
    source = stream if is_utf8(encoding) else _Recoded(stream, encoding)
    return source if start else _WithoutMark(source)


class _Unpacked:
    """A decompressed file; refuses a compressed file of zero bytes."""

    def __init__(self, filesystem: pafs.FileSystem, path: str, unpacked: pa.NativeFile) -> None:
        self._filesystem = filesystem
        self._path = path
        self._unpacked = unpacked
        self._is_first = True

    def read(self, size: int) -> bytes:
        data: bytes = self._unpacked.read(size)
        if self._is_first and not data and not self._filesystem.get_file_info(self._path).size:
            raise OSError("it is empty, which no compressed file is")
        self._is_first = False
        return data


class _WithoutMark:
    """A stream without its byte order mark, if any; ``mark_bytes`` is the mark's size."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._is_first = True
        self.mark_bytes = 0

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        if self._is_first:
            while 0 < len(data) < len(_BOM) and _BOM.startswith(data):
                more = self._source.read(size)
                if not more:
                    break
                data += more
            self._is_first = False
            if data.startswith(_BOM):
                self.mark_bytes = len(_BOM)
                return data[len(_BOM) :] or self._source.read(size)
        return data


class _Recoded:
    """A stream in another encoding, as UTF-8."""

    def __init__(self, source: Bytes, encoding: str) -> None:
        self._source = source
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="strict")

    def read(self, size: int) -> bytes:
        while True:
            data = self._source.read(size)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeError as error:
                # UTF-16 and UTF-32 decoders raise a plain UnicodeError without a byte order mark.
                reason = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
                raise UndecodableError(f"it is not {self._encoding}: {reason}") from None
            if text or not data:
                return text.encode("utf-8")


class Lines:
    """The lines of a stream that begin at byte ``start`` or later, and before ``end`` if given.

    The stream begins at the byte before ``start``, or at 0.
    """

    def __init__(self, source: Bytes, start: int, end: int | None) -> None:
        self._source = source
        self._position = max(start - 1, 0)
        self._is_first = True
        self._is_before = start > 0
        self._end = sys.maxsize if end is None else end
        self._is_over = False

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, up to the end of the last line."""
        while not self._is_over:
            data = self._source.read(size)
            if self._is_first:
                self._position += mark_bytes(self._source)
                self._is_first = False
            self._is_over = not data
            data = self._cut(data)
            if data:
                return data
        return b""

    def _cut(self, data: bytes) -> bytes:
        begin, self._position = self._position, self._position + len(data)
        # A line that begins at `end` belongs to the next part.
        if self._position >= self._end:
            last = data.find(b"\n", max(self._end - 1 - begin, 0))
            if last >= 0:
                self._is_over = True
                data = data[: last + 1]
        if self._is_before:
            first = data.find(b"\n")
            if first < 0:
                return b""
            self._is_before = False
            data = data[first + 1 :]
        return data
