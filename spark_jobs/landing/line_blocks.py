"""The lines of a part of a file, in blocks. Imported by executors."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.fs as pafs

from spark_jobs.landing.blocks import Blocks, RecordTooLongError
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.streams import lines_before, opened_part


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
