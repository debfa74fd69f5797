"""A stream in blocks of bytes or lines; the consumer says how much of each it takes.

Imported by executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.landing.files import FilePart
from spark_jobs.landing.streams import Bytes, lines_before, opened_part

BLOCK_BYTES: Final = 8 * 1024 * 1024


class RecordTooLongError(ValueError):
    """A record, or what looks like one, is longer than the source allows.

    ``line``: where it begins, from 1; None if unknown.
    """

    def __init__(self, line: int | None = None) -> None:
        where = "" if line is None else f" that begins on line {line}"
        super().__init__(f"a record{where} is longer than the source allows")
        self.line = line


class Blocks:
    """The data of a stream that has been read but not taken.

    ``is_end``: nothing follows it. ``position``: how many bytes were taken.
    """

    def __init__(self, stream: Bytes, max_record_bytes: int) -> None:
        self._stream = stream
        self._limit = max_record_bytes
        self._stuck = False
        self.position = 0
        self.data = b""
        self.is_end = False

    def read_on(self) -> bool:
        """Append another block to the data; False at the end.

        Raises:
            RecordTooLongError: nothing was taken, though the data exceeds the longest record
                allowed.
        """
        if self.is_end:
            return False
        # A line end has at most two bytes, and the second may not have been read yet.
        if self._stuck and len(self.data) > self._limit + 1:
            raise RecordTooLongError
        # Double the data for a long record, so that it is scanned only a few times.
        size = max(BLOCK_BYTES, len(self.data))
        if self._stuck:
            size = min(size, self._limit + 2 - len(self.data))
        more = self._stream.read(size)
        self.is_end = not more
        self.data += more
        return True

    def take(self, count: int) -> None:
        """Drop the first ``count`` bytes."""
        self._stuck = count == 0
        self.position += count
        self.data = self.data[count:]


def read_whole(stream: Bytes, max_bytes: int) -> bytes:
    """All data of a stream that is a single record.

    Raises:
        RecordTooLongError: it has more than ``max_bytes``.
    """
    blocks = []
    size = 0
    while block := stream.read(BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
        if size > max_bytes:
            raise RecordTooLongError
    return b"".join(blocks)


def line_blocks(
    filesystem: pafs.FileSystem, part: FilePart, encoding: str, max_line_bytes: int
) -> Iterator[tuple[int, bytes]]:
    r"""Blocks of whole lines, each with the number of lines before it in the part.

    A line ends with ``\n``, ``\r\n`` or ``\r``.

    Raises:
        RecordTooLongError: a line is longer than ``max_line_bytes``.
        UndecodableError, OSError: the file cannot be read.
    """
    before = 0
    with opened_part(filesystem, part, encoding) as stream:
        blocks = Blocks(stream, max_line_bytes)
        try:
            while blocks.read_on():
                data = _whole_lines(blocks.data, is_end=blocks.is_end)
                if len(data) > max_line_bytes:
                    _require_short(data, max_line_bytes)
                if data:
                    yield before, data
                before += count_lines(data)
                blocks.take(len(data))
        except RecordTooLongError as error:
            line = before + (error.line or 1)
            raise RecordTooLongError(lines_before(filesystem, part) + line) from None


def count_lines(data: bytes) -> int:
    """How many lines end in ``data``."""
    count = data.count(b"\n")
    return count + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else count


def _whole_lines(data: bytes, *, is_end: bool) -> bytes:
    if is_end:
        return data
    # A line feed may still follow a carriage return that ends the data.
    return data[: max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1]


def _require_short(data: bytes, most: int) -> None:
    for number, line in enumerate(data.splitlines(), 1):
        if len(line) > most:
            raise RecordTooLongError(number)
