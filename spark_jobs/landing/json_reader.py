"""JSON files as rows. Imported by executors.

There are two ways to the same rows. pyarrow parses blocks of lines that ``json_blocks`` finds
plain. ``json_records`` parses every other block, and files whose values span lines; it says what is
wrong and where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.landing.base64_texts import binaries
from spark_jobs.landing.blocks import line_blocks, read_whole
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.json_blocks import Doubt, is_regular, line_block, read_columns
from spark_jobs.landing.json_records import Record, file_records, line_records
from spark_jobs.landing.json_values import column_values, json_rules, problem_of
from spark_jobs.landing.records import BadRecord, Column, Problem, RecordLocation, RowBlock
from spark_jobs.landing.rows import Found, Wanted, block_of
from spark_jobs.landing.streams import is_utf8, opened_part
from spark_jobs.landing.values import Parsed, TextRules, parsed

# Records parsed one by one need much more memory than their bytes.
_CHUNK_RECORDS: Final = 10_000
_MOST_OTHERS: Final = 100


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads parts of JSON files. Picklable.

    Each line is a record or an array of records. With ``multi_line``, the file is a sequence of
    such values, which may span lines, and is read as a whole.
    """

    wanted: Wanted
    encoding: str = "utf-8"
    multi_line: bool = False
    max_record_bytes: int = 64 * 1024 * 1024

    @property
    def is_splittable(self) -> bool:
        """Whether a large uncompressed file may be read in parts."""
        return not self.multi_line and is_utf8(self.encoding)

    @property
    def _rules(self) -> TextRules:
        return json_rules(self.wanted.rules)

    @property
    def _is_regular(self) -> bool:
        return all(is_regular(column.kind) for column in self.wanted.read)

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of ``part``, block by block.

        Raises:
            RecordTooLongError: a line, or with ``multi_line`` the file, is longer than
                ``max_record_bytes``.
            UndecodableError, OSError: the file cannot be read.
        """
        if self.multi_line:
            with opened_part(filesystem, part, self.encoding) as stream:
                records = file_records(read_whole(stream, self.max_record_bytes))
                yield from self._exact(records, Position(0, 0))
            return
        wanted = {column.name.lower() for column in self.wanted.read}
        seen: frozenset[str] = frozenset()
        position = Position(0, None if part.start else 0)
        blocks = line_blocks(filesystem, part, self.encoding, self.max_record_bytes)
        for before, data in blocks:
            position = position._replace(lines=before)
            fast = self._fast(data, position, seen)
            for block in self._exact(line_records(data), position) if fast is None else (fast,):
                yield block
                seen |= {name for name in block.seen if name.lower() in wanted}
                position = position.behind(block.records)

    def _fast(self, data: bytes, position: Position, seen: frozenset[str]) -> RowBlock | None:
        block = line_block(data) if self._is_regular else None
        if block is None:
            return None
        wanted, rules = self.wanted.read, self._rules
        try:
            columns = read_columns(block, wanted, seen)
        except Doubt:
            return None
        values = [
            _values(array, column.kind, block.records, rules)
            for array, column in zip(columns.found, wanted, strict=True)
        ]
        raw = cache(block.raw)

        def location(row: int) -> tuple[RecordLocation, bytes]:
            return position.location(block.lines + row, row), raw()[row]

        def problem(column: int, row: int) -> Problem:
            return problem_of(raw()[row].decode("utf-8"), wanted[column], rules)

        names = _seen_names(columns.seen, wanted)
        return block_of(self.wanted, Found(values, block.records, problem, location), (), names)

    def _exact(self, records: Iterable[Record], position: Position) -> Iterator[RowBlock]:
        rows = JsonRows(self.wanted, self._rules, position)
        for record in records:
            rows.add(record)
            if rows.count == _CHUNK_RECORDS:
                yield rows.block()
                position = position.behind(rows.count)
                rows = JsonRows(self.wanted, self._rules, position)
        if rows.count:
            yield rows.block()


def _values(array: pa.Array | None, kind: pa.DataType, count: int, rules: TextRules) -> Parsed:
    """A column that Arrow read, converted to ``kind``."""
    if array is None:
        return Parsed(pa.nulls(count, kind), None)
    if not pa.types.is_string(array.type) or pa.types.is_string(kind):
        return Parsed(array if array.type == kind else array.cast(kind), None)
    return binaries(array) if pa.types.is_binary(kind) else parsed(array, kind, rules)


class Position(NamedTuple):
    """How many lines and records precede some records; ``records`` is None in later file parts."""

    lines: int
    records: int | None

    def location(self, line: int, row: int) -> RecordLocation:
        """The location of a record after ``line`` more lines and ``row`` more records."""
        return RecordLocation(
            self.lines + line + 1, None if self.records is None else self.records + row + 1
        )

    def behind(self, records: int) -> Position:
        """The position ``records`` further on."""
        return self if self.records is None else self._replace(records=self.records + records)


class JsonRows:
    """Collects the values of records and drops their objects at once, so that few are alive."""

    def __init__(self, wanted: Wanted, rules: TextRules, position: Position) -> None:
        self.count = 0
        self._wanted = wanted
        self._rules = rules
        self._position = position
        self._names = _Names(wanted.read)
        self._columns: list[list[Any]] = [[] for _ in wanted.read]
        self._bad: list[BadRecord] = []
        # Per row: the lines and records before it, and its bytes.
        self._lines: list[int] = []
        self._numbers: list[int] = []
        self._raw: list[bytes] = []

    def add(self, record: Record) -> None:
        """Add the next record."""
        number, self.count = self.count, self.count + 1
        problem = record.problem
        if problem is None:
            cells, twice = self._names.cells(record.members or ())
            problem = None if twice is None else _named_twice(twice)
        if problem is not None:
            location = self._position.location(record.line, number)
            self._bad.append(BadRecord(location, record.raw, problem))
            return
        for index, values in enumerate(self._columns):
            values.append(cells.get(index))
        self._lines.append(record.line)
        self._numbers.append(number)
        self._raw.append(record.raw)

    def block(self) -> RowBlock:
        """The rows of the records so far."""
        columns = self._wanted.read
        values = [
            column_values(cells, column, self._rules, self._text)
            for cells, column in zip(self._columns, columns, strict=True)
        ]
        found = Found(values, len(self._raw), self._problem, self._location)
        return block_of(self._wanted, found, self._bad, _seen_names(self._names, columns))

    def _text(self, row: int) -> str:
        return self._raw[row].decode("utf-8")

    def _problem(self, column: int, row: int) -> Problem:
        return problem_of(self._text(row), self._wanted.read[column], self._rules)

    def _location(self, row: int) -> tuple[RecordLocation, bytes]:
        return self._position.location(self._lines[row], self._numbers[row]), self._raw[row]


class _Names(dict[str, int | None]):
    """The index of the wanted column that a name means, or None; the keys are all names met."""

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__()
        self._columns = columns
        self._indexes = {column.name.lower(): i for i, column in enumerate(columns)}

    def __missing__(self, name: str) -> int | None:
        index = self._indexes.get(name.lower())
        self[name] = index
        return index

    def cells(self, members: Iterable[tuple[str, Any]]) -> tuple[dict[int, Any], Column | None]:
        """The values of the wanted columns by index, and the first column that is named twice."""
        cells: dict[int, Any] = {}
        for name, value in members:
            index = self[name]
            if index is not None:
                if index in cells:
                    return cells, self._columns[index]
                cells[index] = value
        return cells, None


def _seen_names(names: Iterable[str], wanted: Sequence[Column]) -> frozenset[str]:
    r"""All names that mean a wanted column, and a few others; there may be a new name per record.

    Unpaired surrogates are written as ``\ud800``.
    """
    lowered = {column.name.lower() for column in wanted}
    others = (name for name in names if name.lower() not in lowered)
    found = [*(name for name in names if name.lower() in lowered), *islice(others, _MOST_OTHERS)]
    return frozenset(name.encode("utf-8", "backslashreplace").decode("utf-8") for name in found)


def _named_twice(column: Column) -> Problem:
    return Problem(
        f"names twice the column {column.name}",
        "Correct the file; on_bad_rows='quarantine' sets such records aside.",
        column.name,
    )
