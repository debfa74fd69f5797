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

from spark_jobs.landing.blocks import Blocks
from spark_jobs.landing.csv_blocks import RecordPlaces, regular_end
from spark_jobs.landing.csv_header import Header
from spark_jobs.landing.csv_records import CsvScanner, Dialect, Record
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.records import BadRecord, Column, Place, Problem, RowBlock
from spark_jobs.landing.rows import Found, Wanted, block_of, text_problem
from spark_jobs.landing.streams import Bytes, Lines, opened
from spark_jobs.landing.values import Parsed, parsed


class _Position(NamedTuple):
    """What lies before the block: lines, and records, None in the later parts of a file."""

    lines: int
    records: int | None


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

    def header(self, filesystem: pafs.FileSystem, part: FilePart) -> Header | None:
        """The header of the part's file; None for a file without records.

        Raises:
            CatalogError: SOURCE_UNREADABLE; a wanted column is missing, or stands there twice.
        """
        with opened(filesystem, part.file.path, self.encoding) as stream:
            blocks = Blocks(stream, self.max_record_bytes)
            scanner = CsvScanner(self.dialect)
            while blocks.read_on():
                first = next(scanner.records(blocks.data, is_end=blocks.is_end), None)
                if first is not None:
                    return self._header_of(part, first)
        return None

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of ``part``, block by block.

        Raises:
            CatalogError: as ``header``.
            RecordTooLongError: a record is longer than ``max_record_bytes``.
            UndecodableError, OSError: the file can not be read.
        """
        header = self.header(filesystem, part) if part.start else None
        if part.start and header is None:
            return
        with opened(filesystem, part.file.path, self.encoding, max(part.start - 1, 0)) as stream:
            lines: Bytes = Lines(stream, part.start, part.end) if part.end else stream
            yield from self._blocks(lines, part, header)

    def _blocks(self, stream: Bytes, part: FilePart, header: Header | None) -> Iterator[RowBlock]:
        scanner = CsvScanner(self.dialect)
        position = _Position(0, None if part.start else 0)
        blocks = Blocks(stream, self.max_record_bytes)
        while blocks.read_on():
            if header is None:
                first = next(scanner.records(blocks.data, is_end=blocks.is_end), None)
                if first is None:
                    continue
                header = self._header_of(part, first)
                if self.has_header:
                    position = _Position(first.line + first.lines, 0)
                    blocks.take(_behind(blocks.data, first))
            taken = self._fast(blocks, header, position) or self._slow(
                scanner, blocks, header, position
            )
            if taken is None:
                blocks.take(0)
                continue
            block, size, lines = taken
            yield block
            records = None if position.records is None else position.records + block.records
            position = _Position(position.lines + lines, records)
            blocks.take(size)

    def _header_of(self, part: FilePart, first: Record) -> Header:
        if not self.has_header:
            return Header.without(self.wanted.read)
        if first.problem is not None:
            raise Header.unreadable(part.file.name, first.problem)
        names = [field.value.decode("utf-8", "backslashreplace") for field in first.fields]
        if self.by_position:
            return Header.without(self.wanted.read)
        return Header.of(names, self.wanted.read, part.file.name)

    def _fast(
        self, blocks: Blocks, header: Header, position: _Position
    ) -> tuple[RowBlock, int, int] | None:
        end = regular_end(blocks.data, self.dialect, is_end=blocks.is_end)
        if not end:
            return None
        data = blocks.data[:end]
        try:
            table = pacsv.read_csv(
                pa.BufferReader(data),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=end + 1, column_names=header.fields
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self.dialect.separator.decode(),
                    quote_char=self.dialect.quote.decode() or False,
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
            fields, problem = self._fields(record, header)
            raw = data[record.start : record.end]
            if problem is not None and (fields is None or self.wanted.leniency != "null"):
                unreadable.append(BadRecord(_place(position, record.line, count), raw, problem))
            else:
                assert fields is not None  # noqa: S101 - else there is a problem
                rows.append(fields)
                ragged.append(problem is not None)
                records.append((_place(position, record.line, count), raw))
            size, lines = _behind(data, record), record.line + record.lines
        if blocks.is_end:
            size = len(data)
        if not size:
            return None
        columns = zip(*rows, strict=True) if rows else [()] * len(self.wanted.read)
        texts = [pa.array(column, pa.string()) for column in columns]
        values, texts = self._values(texts)
        damaged = np.array(ragged) if any(ragged) else None
        problems = self._problems(texts)
        found = Found(values, len(rows), problems, records.__getitem__, damaged)
        return block_of(self.wanted, found, unreadable, header.seen), size, lines

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
            return None, Problem(
                "has bytes that are not UTF-8",
                "options={'encoding': 'ISO-8859-1'} or another name says how the file is written.",
            )
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


def _behind(data: bytes, record: Record) -> int:
    """Where the next record may begin."""
    if data.startswith(b"\r\n", record.end):
        return record.end + 2
    return min(record.end + 1, len(data))


def _place(position: _Position, line: int, row: int) -> Place:
    number = None if position.records is None else position.records + row + 1
    return Place(position.lines + line + 1, number)
