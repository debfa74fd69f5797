"""Text files as rows of one column; a row is a line or a whole file. Imported by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.landing.blocks import line_blocks, read_whole
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.records import NOT_UTF8, BadRecord, Problem, RecordLocation, RowBlock
from spark_jobs.landing.rows import Found, Wanted, block_of
from spark_jobs.landing.streams import is_utf8, opened_part
from spark_jobs.landing.values import Parsed


@dataclass(frozen=True, slots=True)
class TextReader:
    r"""Reads parts of text files. Picklable.

    A line ends with ``\n``, ``\r\n`` or ``\r``; an empty line is a row too. With ``whole_text`` a
    file is one row, including its line ends. Columns are STRING; there is at most one.
    """

    wanted: Wanted
    encoding: str = "utf-8"
    whole_text: bool = False
    max_record_bytes: int = 64 * 1024 * 1024

    @property
    def is_splittable(self) -> bool:
        """Whether several tasks may share the lines of a file."""
        return not self.whole_text and is_utf8(self.encoding)

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The lines of ``part``, block by block.

        Raises:
            RecordTooLongError: a line, or with ``whole_text`` the file, is longer than
                ``max_record_bytes``.
            UndecodableError, OSError: the file cannot be read.
        """
        if self.whole_text:
            with opened_part(filesystem, part, self.encoding) as stream:
                yield self._block([read_whole(stream, self.max_record_bytes)], 0, is_first=True)
            return
        blocks = line_blocks(filesystem, part, self.encoding, self.max_record_bytes)
        for before, data in blocks:
            yield self._block(data.splitlines(), before, is_first=not part.start)

    def _block(self, lines: Sequence[bytes], before: int, *, is_first: bool) -> RowBlock:
        def location(line: int) -> RecordLocation:
            return RecordLocation(before + line + 1, before + line + 1 if is_first else None)

        texts, bad = _texts(lines), []
        if texts is None:
            good = [line for line in lines if _is_utf8(line)]
            bad = [
                BadRecord(location(i), line, NOT_UTF8)
                for i, line in enumerate(lines)
                if not _is_utf8(line)
            ]
            texts = _texts(good)
            assert texts is not None  # noqa: S101 - each of them is UTF-8
        found = Found([Parsed(texts, None)] * len(self.wanted.read), len(texts), _problem, _row)
        return block_of(self.wanted, found, bad, frozenset())


def _texts(lines: Sequence[bytes]) -> pa.Array | None:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _problem(column: int, row: int) -> Problem:
    raise AssertionError(f"a text is no STRING: {column}, {row}")


def _row(row: int) -> tuple[RecordLocation, bytes]:
    raise AssertionError(f"a text is no STRING: {row}")
