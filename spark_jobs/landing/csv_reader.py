"""CSV files as rows. Imported by executors.

Two ways to the same rows. pyarrow's parser takes blocks that ``csv_blocks`` has found
regular. Every other block, and each that pyarrow refuses, is taken apart by ``csv_records``, which
says what is wrong where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.fs as pafs

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.blocks import Blocks, RecordTooLongError
from spark_jobs.landing.csv_blocks import RecordPlaces, regular_end
from spark_jobs.landing.csv_header import Header
from spark_jobs.landing.csv_records import NOT_CLOSED, CsvScanner, Dialect, Record, behind
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.records import (
    NOT_UTF8,
    BadRecord,
    Column,
    Place,
    Problem,
    RowBlock,
    text_of,
)
from spark_jobs.landing.rows import Found, Wanted, block_of, text_problem
from spark_jobs.landing.streams import (
    Bytes,
    is_utf8,
    lines_before,
    mark_bytes,
    opened,
    opened_part,
)
from spark_jobs.landing.values import Parsed, parsed


class _Position(NamedTuple):
    """What lies before the block: lines, and records, None in the later parts of a file."""

    lines: int
    records: int | None

    def behind(self, block: RowBlock, lines: int) -> _Position:
        """The position behind ``block``, of so many lines."""
        records = None if self.records is None else self.records + block.records
        return _Position(self.lines + lines, records)


class _NotClosedError(ValueError):
    """A quote is not closed on its ``line`` of the part."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _First(NamedTuple):
    """A file's first record; the byte where its line begins, and lines before the block."""

    record: Record
    line_start: int
    lines: int


@dataclass(frozen=True, slots=True)
class CsvReader:
    """Reads parts of CSV files. Picklable.

    ``has_header``: each file begins with the names of its columns, which are not looked at where
    ``by_position``. ``null_text`` stands for NULL, beside a field that is empty and not quoted;
    ``empty_text`` is what a field that is empty and quoted stands for.
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
        """Whether the lines of a file may be read by several tasks."""
        return not self.dialect.multi_line and is_utf8(self.encoding)

    def first_record(self, filesystem: pafs.FileSystem, part: FilePart) -> list[str] | None:
        """The texts of a file's first record, the header where it has one; None: it has none.

        Raises:
            CatalogError: SOURCE_UNREADABLE; it is no record.
        """
        first = self._first_of(filesystem, part)
        if first is not None and first.record.problem is not None:
            raise Header.unreadable(part.file.name, first.record.problem)
        return None if first is None else [text_of(field.value) for field in first.record.fields]

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of ``part``, block by block.

        Raises:
            CatalogError: SOURCE_UNREADABLE; a wanted column is missing, or stands there twice; a
                quote is not closed on its line where records are lines, and bad ones are told.
            RecordTooLongError: a record is longer than ``max_record_bytes``.
            UndecodableError, OSError: the file can not be read.
        """
        header = None
        if part.start and self.has_header:
            first = self._first_of(filesystem, part)
            if first is None:
                return
            # Behind blank lines, the header may be in this part.
            header = self._header_of(part, first) if first.line_start < part.start else None
        try:
            with opened_part(filesystem, part, self.encoding) as stream:
                yield from self._blocks(stream, part, header)
        except _NotClosedError as error:
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
        """The first record, which begins in the block's data; None: there is none."""
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
        position = _Position(0, None if part.start else 0)
        if header is None and self.has_header:
            first = self._first(blocks, scanner)
            if first is None:
                return
            header = self._header_of(part, first)
            position = _Position(first.lines + first.record.line + first.record.lines, 0)
            blocks.take(behind(blocks.data, first.record.end))
        header = header or Header.without(self.wanted.read)
        while True:
            taken = self._fast(blocks, header, position) or self._slow(
                scanner, blocks, header, position
            )
            if taken is not None:
                block, size, lines = taken
                yield block
                position = position.behind(block, lines)
            blocks.take(0 if taken is None else size)
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
        names = [text_of(field.value) for field in record.fields]
        line = first.lines + record.line + 1
        return Header.of(names, self.wanted.read, f"{part.file.name}, line {line}")

    def _fast(
        self, blocks: Blocks, header: Header, position: _Position
    ) -> tuple[RowBlock, int, int] | None:
        end = regular_end(blocks.data, self.dialect, is_end=blocks.is_end)
        if not end or not header.fields:
            return None
        data = blocks.data[:end]
        try:
            table = pacsv.read_csv(
                # pyarrow takes an empty field for a quoted one at the end of the last line.
                pa.BufferReader(data if data.endswith(b"\n") else data + b"\n"),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=end + 2, column_names=header.fields
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self.dialect.separator.decode(),
                    quote_char=self.dialect.quote.decode() or False,
                    double_quote=self.dialect.escape == self.dialect.quote,
                    newlines_in_values=self.dialect.multi_line,
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(header.fields, pa.string()),
                    include_columns=header.wanted_fields or header.fields[:1],
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            ).combine_chunks()
        except pa.ArrowInvalid:
            return None
        places = RecordPlaces(data, self.dialect)
        if end > self.max_record_bytes and places.longest > self.max_record_bytes:
            return None
        texts = [_combined(table[field]) for field in header.wanted_fields]

        def place(row: int) -> tuple[Place, bytes]:
            start, stop, line = places.of(row)
            return _place(position, line, row), data[start:stop]

        values, texts = self._values(texts)
        if any(each.bad is not None for each in values) and places.count != table.num_rows:
            return None
        found = Found(values, table.num_rows, self._problems(texts), place)
        block = block_of(self.wanted, found, (), header.seen)
        return block, end, places.lines

    def _slow(
        self, scanner: CsvScanner, blocks: Blocks, header: Header, position: _Position
    ) -> tuple[RowBlock, int, int] | None:
        data = blocks.data
        records, unreadable, lines, size = [], [], 0, 0
        ragged: list[bool] = []
        rows: list[tuple[str | None, ...]] = []
        for count, record in enumerate(scanner.records(data, is_end=blocks.is_end)):
            if record.end - record.start > self.max_record_bytes:
                raise RecordTooLongError(position.lines + record.line + 1)
            if record.problem is NOT_CLOSED and self.wanted.leniency == "tell":
                raise _NotClosedError(position.lines + record.line + 1)
            fields, problem = self._fields(record, header)
            raw = data[record.start : record.end]
            if problem is not None and (fields is None or self.wanted.leniency != "null"):
                unreadable.append(BadRecord(_place(position, record.line, count), raw, problem))
            else:
                assert fields is not None  # noqa: S101 - else there is a problem
                rows.append(fields)
                ragged.append(problem is not None)
                records.append((_place(position, record.line, count), raw))
            size, lines = behind(data, record.end), record.line + record.lines
        size, skipped = scanner.skipped(data, size, is_end=blocks.is_end)
        if not size:
            return None
        columns = zip(*rows, strict=True) if rows else [()] * len(self.wanted.read)
        texts = [pa.array(column, pa.string()) for column in columns]
        values, texts = self._values(texts)
        damaged = np.array(ragged) if any(ragged) else None
        problems = self._problems(texts)
        found = Found(values, len(rows), problems, records.__getitem__, damaged)
        return block_of(self.wanted, found, unreadable, header.seen), size, lines + skipped

    def _fields(
        self, record: Record, header: Header
    ) -> tuple[tuple[str | None, ...] | None, Problem | None]:
        """The texts of the wanted columns, as far as there are any, and what is wrong."""
        if record.problem is not None:
            return None, record.problem
        problem = None
        if len(record.fields) != len(header.fields):
            problem = header.ragged(len(record.fields))
        texts: list[str | None] = []
        try:
            for index in header.indexes:
                if index >= len(record.fields):
                    texts.append(None)
                    continue
                value, quoted = record.fields[index]
                texts.append(value.decode("utf-8") if value or quoted else None)
        except UnicodeDecodeError:
            return None, NOT_UTF8
        return tuple(texts), problem

    def _values(self, texts: Sequence[pa.Array]) -> tuple[list[Parsed], list[pa.Array]]:
        """The texts as values, and as they are compared with what stands for NULL."""
        ready = [
            self._ready(column, text) for column, text in zip(self.wanted.read, texts, strict=True)
        ]
        values = [
            parsed(text, column.kind, self.wanted.rules)
            for column, text in zip(self.wanted.read, ready, strict=True)
        ]
        return values, ready

    def _ready(self, column: Column, texts: pa.Array) -> pa.Array:
        ready = texts
        if self.null_text:
            ready = pc.if_else(pc.equal(ready, self.null_text), None, ready)
        if not pa.types.is_string(column.kind):
            return pc.if_else(pc.equal(ready, ""), None, ready)
        return pc.if_else(pc.equal(ready, ""), self.empty_text, ready) if self.empty_text else ready

    def _problems(self, texts: Sequence[pa.Array]) -> Callable[[int, int], Problem]:
        wanted = self.wanted

        def problem(column: int, row: int) -> Problem:
            return text_problem(wanted.read[column], texts[column][row].as_py(), wanted.rules)

        return problem


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


def _place(position: _Position, line: int, row: int) -> Place:
    number = None if position.records is None else position.records + row + 1
    return Place(position.lines + line + 1, number)
