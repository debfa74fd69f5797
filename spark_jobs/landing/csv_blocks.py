"""How much of a block of CSV is so regular that every parser reads the same.

Imported by executors.
"""

from __future__ import annotations

import codecs
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from spark_jobs.landing.csv_records import Dialect

_NEWLINE: Final = 10
_RETURN: Final = 13

Positions = np.ndarray[Any, np.dtype[np.int64]]


def regular_end(data: bytes, dialect: Dialect, *, is_end: bool) -> int:
    """Up to where ``data`` is whole records with quotes around whole fields, or doubled.

    0 where that is not certain, or where a record is not whole yet.
    """
    if dialect.trim_left or dialect.trim_right or _has_other_marks(data, dialect):
        return 0
    # pyarrow takes it from the beginning of each block.
    if data.startswith(codecs.BOM_UTF8):
        return 0
    if not dialect.quote or dialect.quote not in data:
        end = len(data) if is_end else data.rfind(b"\n") + 1
        return 0 if _has_lone_returns(data, end) else end
    found = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(found == dialect.quote[0])
    end = len(data) if is_end else _last_line_end(data, quotes)
    quotes = quotes[: np.searchsorted(quotes, end)]
    if len(quotes) % 2 or not _around_fields(found[:end], quotes, dialect):
        return 0
    if not dialect.multi_line:
        breaks = np.flatnonzero(found[:end] == _NEWLINE)
        if (np.searchsorted(quotes, breaks) % 2).any():
            return 0
    return 0 if _has_lone_returns(data, end) else end


def _has_other_marks(data: bytes, dialect: Dialect) -> bool:
    """Whether there are escapes or comments."""
    if dialect.escape != dialect.quote and dialect.escape and dialect.escape in data:
        return True
    comment = dialect.comment
    return bool(comment) and (data.startswith(comment) or b"\n" + comment in data)


def _has_lone_returns(data: bytes, end: int) -> bool:
    """Whether lines before ``end`` end in a carriage return alone."""
    return b"\r" in data and data.count(b"\r", 0, end) != data.count(b"\r\n", 0, end)


def _last_line_end(data: bytes, quotes: Positions) -> int:
    """Behind the last line end that is not within quotes, if they are regular."""
    end = data.rfind(b"\n")
    while end >= 0:
        before = int(np.searchsorted(quotes, end))
        if before % 2 == 0:
            return end + 1
        end = data.rfind(b"\n", 0, int(quotes[before - 1]))
    return 0


def _around_fields(data: np.ndarray[Any, Any], quotes: Positions, dialect: Dialect) -> bool:
    """Whether opening quotes begin fields and closing ones end them, but for doubled ones."""
    separator = dialect.separator[0]
    opening, closing = quotes[0::2], quotes[1::2]
    doubled = (closing[:-1] + 1 == opening[1:]) & (dialect.escape == dialect.quote)
    begins = _is_any(data, opening - 1, separator)
    if len(opening) and opening[0] == 0:
        begins[0] = True
    begins[1:] |= doubled
    ends = _is_any(data, np.minimum(closing + 1, len(data) - 1), separator)
    if len(closing) and closing[-1] + 1 == len(data):
        ends[-1] = True
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def _is_any(data: np.ndarray[Any, Any], positions: Positions, separator: int) -> Any:
    at = data[positions]
    return (at == separator) | (at == _NEWLINE) | (at == _RETURN)


class RecordPlaces:
    """Where the records of regular data are; blank lines are none."""

    def __init__(self, data: bytes, dialect: Dialect) -> None:
        self._data = data
        self._quote = dialect.quote
        self._has_quotes = bool(dialect.quote) and dialect.quote in data

    @cached_property
    def _line_ends(self) -> Positions:
        return np.flatnonzero(np.frombuffer(self._data, np.uint8) == _NEWLINE)

    @cached_property
    def _bounds(self) -> tuple[Positions, Positions]:
        ends = self._line_ends
        if self._has_quotes:
            quotes = np.flatnonzero(np.frombuffer(self._data, np.uint8) == self._quote[0])
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        starts = np.concatenate([[0], ends + 1])
        ends = np.concatenate([ends, [len(self._data)]])
        found = np.frombuffer(self._data + b"\n", np.uint8)
        ends = np.where((ends > starts) & (found[ends - 1] == _RETURN), ends - 1, ends)
        kept = ends > starts
        return starts[kept], ends[kept]

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self._bounds[0])

    @property
    def longest(self) -> int:
        """The most bytes that a record has."""
        starts, ends = self._bounds
        return int((ends - starts).max(initial=0))

    @property
    def lines(self) -> int:
        """How many lines end in the data."""
        return len(self._line_ends) if "_line_ends" in self.__dict__ else self._data.count(b"\n")

    def of(self, row: int) -> tuple[int, int, int]:
        """Where a record begins and ends, and how many lines end before it."""
        start, end = (int(each[row]) for each in self._bounds)
        return start, end, int(np.searchsorted(self._line_ends, start))
