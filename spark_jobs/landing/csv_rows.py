"""Pieces of a CSV file as rows of the wanted columns. Imported by executors.

There are two ways to the same rows. pyarrow parses what ``csv_blocks`` finds regular.
``csv_records`` parses the rest, and what pyarrow rejects; it says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from spark_jobs.landing.base64_texts import binaries
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.csv_blocks import RecordBounds, regular_end
from spark_jobs.landing.csv_header import Header
from spark_jobs.landing.csv_records import NOT_CLOSED, CsvScanner, Dialect, Record, behind
from spark_jobs.landing.records import (
    NOT_UTF8,
    BadRecord,
    Column,
    Problem,
    RecordLocation,
    RowBlock,
)
from spark_jobs.landing.rows import Found, Wanted, block_of, text_problem
from spark_jobs.landing.values import Parsed, parsed


class Position(NamedTuple):
    """How many lines and records precede a piece; ``records`` is None in later parts of a file."""

    lines: int
    records: int | None

    def location(self, line: int, row: int) -> RecordLocation:
        """The location of a record that ``line`` lines and ``row`` records of the piece precede."""
        number = None if self.records is None else self.records + row + 1
        return RecordLocation(self.lines + line + 1, number)

    def behind(self, taken: Taken) -> Position:
        """The position after what was taken."""
        records = None if self.records is None else self.records + taken.block.records
        return Position(self.lines + taken.lines, records)


class Taken(NamedTuple):
    """Rows, and how many bytes and lines of the piece they come from."""

    block: RowBlock
    size: int
    lines: int


class NotClosedError(ValueError):
    """A quote is not closed on its ``line`` of the part."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Makes rows; the settings are as in ``CsvReader``."""

    wanted: Wanted
    dialect: Dialect
    header: Header
    scanner: CsvScanner
    null_text: str
    empty_text: str
    max_record_bytes: int

    def regular(self, data: bytes, position: Position, *, is_end: bool) -> Taken | None:
        """The regular records that ``data`` begins with, parsed by pyarrow; None where in doubt.

        The last line counts as whole only if ``is_end``.
        """
        end = regular_end(data, self.dialect, is_end=is_end)
        if not end or not self.header.fields:
            return None
        data = data[:end]
        table = self._table(data)
        if table is None:
            return None
        bounds = RecordBounds(data, self.dialect)
        if end > self.max_record_bytes and bounds.longest > self.max_record_bytes:
            return None

        def location(row: int) -> tuple[RecordLocation, bytes]:
            start, stop, line = bounds.of(row)
            return position.location(line, row), data[start:stop]

        texts = [self._trimmed(_combined(table[field])) for field in self.header.wanted_fields]
        values, texts = self._values(texts)
        if any(each.bad is not None for each in values) and bounds.count != table.num_rows:
            return None
        found = Found(values, table.num_rows, self._problems(texts), location)
        return Taken(block_of(self.wanted, found, (), self.header.seen), end, bounds.lines)

    def _table(self, data: bytes) -> pa.Table | None:
        """The texts of regular data, parsed by pyarrow; None if pyarrow rejects it."""
        fields = self.header.fields
        try:
            return pacsv.read_csv(
                # At the end of the last line, pyarrow takes an empty field for a quoted one.
                pa.BufferReader(data if data.endswith(b"\n") else data + b"\n"),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=len(data) + 2, column_names=fields
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self.dialect.separator.decode(),
                    quote_char=self.dialect.quote.decode() or False,
                    newlines_in_values=self.dialect.multi_line,
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(fields, pa.string()),
                    include_columns=self.header.wanted_fields or fields[:1],
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            ).combine_chunks()
        except pa.ArrowInvalid:
            return None

    def _trimmed(self, texts: pa.Array) -> pa.Array:
        """Trimmed texts; blank ones become NULL, since none has quotes if blanks are trimmed."""
        blanks = self.dialect.blanks.decode()
        if self.dialect.trim_left:
            texts = pc.utf8_ltrim(texts, blanks)
        if self.dialect.trim_right:
            texts = pc.utf8_rtrim(texts, blanks)
        if self.dialect.trim_left or self.dialect.trim_right:
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
        return texts

    def exact(self, data: bytes, position: Position, *, is_end: bool) -> Taken | None:
        """The whole records of ``data``, and what is wrong with them; None if nothing was taken.

        Raises:
            NotClosedError: a quote is not closed on its line; only where each record is a line and
                bad records are reported.
            RecordTooLongError: a record is longer than ``max_record_bytes``.
        """
        records: list[Record] = []
        unreadable: list[BadRecord] = []
        rows: list[list[str | None]] = []
        ragged: list[bool] = []
        numbers: list[int] = []
        lines = size = 0
        for number, record in enumerate(self.scanner.records(data, is_end=is_end)):
            self._check(record, position)
            texts, problem = self._texts(record)
            if problem is not None and (texts is None or self.wanted.leniency != "null"):
                raw = data[record.start : record.end]
                unreadable.append(BadRecord(position.location(record.line, number), raw, problem))
            elif texts is not None:
                rows.append(texts)
                ragged.append(problem is not None)
                records.append(record)
                numbers.append(number)
            size, lines = behind(data, record.end), record.line + record.lines
        size, skipped = self.scanner.skipped(data, size, is_end=is_end)
        if not size:
            return None

        def location(row: int) -> tuple[RecordLocation, bytes]:
            record = records[row]
            return position.location(record.line, numbers[row]), data[record.start : record.end]

        columns = zip(*rows, strict=True) if rows else [()] * len(self.wanted.read)
        values, ready = self._values([pa.array(column, pa.string()) for column in columns])
        damaged = np.array(ragged) if any(ragged) else None
        found = Found(values, len(rows), self._problems(ready), location, damaged)
        block = block_of(self.wanted, found, unreadable, self.header.seen)
        return Taken(block, size, lines + skipped)

    def _check(self, record: Record, position: Position) -> None:
        line = position.lines + record.line + 1
        if record.end - record.start > self.max_record_bytes:
            raise RecordTooLongError(line)
        if record.problem is NOT_CLOSED and self.wanted.leniency == "tell":
            raise NotClosedError(line)

    def _texts(self, record: Record) -> tuple[list[str | None] | None, Problem | None]:
        """The texts of the wanted columns (None: unreadable), and what is wrong with the record."""
        if record.problem is not None:
            return None, record.problem
        fields, quoted = record.fields, record.quoted
        problem = None
        if len(fields) != len(self.header.fields):
            problem = self.header.ragged(len(fields))
        try:
            texts = [
                fields[i].decode() if i < len(fields) and (fields[i] or i in quoted) else None
                for i in self.header.indexes
            ]
        except UnicodeDecodeError:
            return None, NOT_UTF8
        return texts, problem

    def _values(self, texts: Sequence[pa.Array]) -> tuple[list[Parsed], list[pa.Array]]:
        """The values of the texts, and the texts with NULL and empty texts replaced."""
        ready = [
            self._ready(column, text) for column, text in zip(self.wanted.read, texts, strict=True)
        ]
        values = [
            self._parsed(text, column.kind)
            for column, text in zip(self.wanted.read, ready, strict=True)
        ]
        return values, ready

    def _parsed(self, texts: pa.Array, kind: pa.DataType) -> Parsed:
        if pa.types.is_binary(kind) and self.wanted.rules.has_base64:
            return binaries(texts)
        return parsed(texts, kind, self.wanted.rules)

    def _ready(self, column: Column, texts: pa.Array) -> pa.Array:
        ready = texts
        if self.null_text:
            ready = pc.if_else(pc.equal(ready, self.null_text), None, ready)
        if pa.types.is_binary(column.kind) and self.wanted.rules.has_base64:
            return ready
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
