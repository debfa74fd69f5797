"""CSV files as rows. Imported by executors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.blocks import Blocks, RecordTooLongError
from spark_jobs.landing.csv_header import Header
from spark_jobs.landing.csv_records import NOT_CLOSED, CsvScanner, Dialect, Record, behind
from spark_jobs.landing.csv_rows import CsvRows, NotClosedError, Position, Taken
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.records import RowBlock, text_of
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.streams import (
    Bytes,
    is_utf8,
    lines_before,
    mark_bytes,
    opened,
    opened_part,
)

# The size in bytes of a piece that is parsed record by record because a part of it needs that.
_PIECE: Final = 16 * 1024
_NARROWER: Final = 8


class _First(NamedTuple):
    """A file's first record, the byte where its line begins, and the lines before the block."""

    record: Record
    line_start: int
    lines: int


@dataclass(frozen=True, slots=True)
class CsvReader:
    """Reads parts of CSV files. Picklable.

    ``has_header``: each file begins with the names of its columns; ``by_position`` ignores them.
    ``null_text`` stands for NULL, as does an empty unquoted field. An empty quoted field has the
    value ``empty_text``.
    """

    wanted: Wanted
    dialect: Dialect
    encoding: str = "utf-8"
    has_header: bool = False
    by_position: bool = False
    null_text: str = ""
    empty_text: str = ""
    max_record_bytes: int = 64 * 1024 * 1024

    @property
    def is_splittable(self) -> bool:
        """Whether several tasks may share the lines of a file."""
        return not self.dialect.multi_line and is_utf8(self.encoding)

    def first_record(self, filesystem: pafs.FileSystem, part: FilePart) -> list[str] | None:
        """The texts of a file's first record (the header, if there is one); None without a record.

        Raises:
            CatalogError: SOURCE_UNREADABLE; the record cannot be parsed.
        """
        first = self._first_of(filesystem, part)
        if first is not None and first.record.problem is not None:
            raise Header.unreadable(part.file.name, first.record.problem)
        return None if first is None else [text_of(field) for field in first.record.fields]

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of ``part``, block by block.

        Raises:
            CatalogError: SOURCE_UNREADABLE; a wanted column is missing or occurs twice, or, where
                each record is a line and bad records are reported, a quote is not closed on its
                line.
            RecordTooLongError: a record is longer than ``max_record_bytes``.
            UndecodableError, OSError: the file cannot be read.
        """
        header = None
        if part.start and self.has_header:
            first = self._first_of(filesystem, part)
            if first is None:
                return
            # After blank lines, the header may lie in this part.
            header = self._header_of(part, first) if first.line_start < part.start else None
        try:
            with opened_part(filesystem, part, self.encoding) as stream:
                yield from self._blocks(stream, part, header)
        except NotClosedError as error:
            line = lines_before(filesystem, part) + error.line
            raise CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{part.file.name}, line {line} {NOT_CLOSED.reason}.",
                NOT_CLOSED.remedy,
            ) from None
        except RecordTooLongError as error:
            before = lines_before(filesystem, part)
            raise RecordTooLongError(before + (error.line or 1)) from None

    def _first_of(self, filesystem: pafs.FileSystem, part: FilePart) -> _First | None:
        with opened(filesystem, part.file.path, self.encoding) as stream:
            first = self._first(Blocks(stream, self.max_record_bytes), CsvScanner(self.dialect))
            if first is None or not first.line_start:
                return first
            return first._replace(line_start=first.line_start + mark_bytes(stream))

    def _first(self, blocks: Blocks, scanner: CsvScanner) -> _First | None:
        """The first record, which begins in the block's data; None if there is none."""
        lines = line_start = 0
        while blocks.read_on():
            data = blocks.data
            record = next(scanner.records(data, is_end=blocks.is_end), None)
            size, skipped = scanner.skipped(data, 0, is_end=blocks.is_end)
            if b"\n" in data[:size]:
                line_start = blocks.position + data.rfind(b"\n", 0, size) + 1
            if record is not None:
                return _First(record, line_start, lines)
            lines += skipped
            blocks.take(size)
        return None

    def _blocks(self, stream: Bytes, part: FilePart, header: Header | None) -> Iterator[RowBlock]:
        scanner = CsvScanner(self.dialect)
        blocks = Blocks(stream, self.max_record_bytes)
        position = Position(0, None if part.start else 0)
        if header is None and self.has_header:
            first = self._first(blocks, scanner)
            if first is None:
                return
            header = self._header_of(part, first)
            position = Position(first.lines + first.record.line + first.record.lines, 0)
            blocks.take(behind(blocks.data, first.record.end))
        rows = CsvRows(
            self.wanted,
            self.dialect,
            header or Header.without(self.wanted.read),
            scanner,
            self.null_text,
            self.empty_text,
            self.max_record_bytes,
        )
        while True:
            for taken in _taken(blocks, rows, position):
                yield taken.block
                position = position.behind(taken)
            try:
                if not blocks.read_on():
                    return
            except RecordTooLongError:
                raise RecordTooLongError(position.lines + 1) from None

    def _header_of(self, part: FilePart, first: _First) -> Header:
        record = first.record
        if record.problem is not None:
            raise Header.unreadable(part.file.name, record.problem)
        if self.by_position:
            return Header.without(self.wanted.read)
        names = [text_of(field) for field in record.fields]
        line = first.lines + record.line + 1
        return Header.of(names, self.wanted.read, f"{part.file.name}, line {line}")


def _taken(blocks: Blocks, rows: CsvRows, position: Position) -> Iterator[Taken]:
    """All whole records of the data that was read.

    The exact parser gets only small pieces around records that are not regular.
    """
    size = len(blocks.data)
    while blocks.data:
        data = blocks.data[:size]
        is_end = blocks.is_end and len(data) == len(blocks.data)
        taken = rows.regular(data, position, is_end=is_end)
        if taken is None and len(data) > _PIECE:
            size = max(len(data) // _NARROWER, _PIECE)
            continue
        if taken is None:
            taken = rows.exact(data, position, is_end=is_end)
        elif taken.size > len(data) // 2:
            size *= _NARROWER
        if taken is None and len(data) < len(blocks.data):
            taken = rows.exact(blocks.data, position, is_end=blocks.is_end)
        if taken is None:
            break
        yield taken
        position = position.behind(taken)
        blocks.take(taken.size)
    blocks.take(0)
