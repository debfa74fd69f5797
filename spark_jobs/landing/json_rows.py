"""Turns JSON records into rows, one by one. Imported by executors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from spark_jobs.landing.json_records import Record
from spark_jobs.landing.json_values import column_values, problem_of
from spark_jobs.landing.records import BadRecord, Column, Problem, RecordLocation, RowBlock
from spark_jobs.landing.rows import Found, Wanted, block_of
from spark_jobs.landing.values import TextRules

_MOST_OTHERS: Final = 100


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
        return block_of(self._wanted, found, self._bad, seen_names(self._names, columns))

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


def seen_names(names: Iterable[str], wanted: Sequence[Column]) -> frozenset[str]:
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
