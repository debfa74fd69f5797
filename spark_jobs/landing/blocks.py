"""A stream in blocks; the consumer says how much of each it takes. Imported by executors."""

from __future__ import annotations

from typing import Final

from spark_jobs.landing.streams import Bytes

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
