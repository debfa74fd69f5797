"""How much of a block of CSV is regular, so that every parser reads it the same way.

Imported by executors.
"""

from __future__ import annotations

import codecs
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from spark_jobs.landing.csv_records import Dialect

_NEWLINE: Final = 10
_RETURN: Final = 13
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")

Positions = np.ndarray[Any, np.dtype[np.int64]]


def regular_end(data: bytes, dialect: Dialect, *, is_end: bool) -> int:
    """The end of the whole, regular records at the start of ``data``; 0 if there are none.

    In a regular record, quotes enclose whole fields or are doubled. The last line counts as whole
    only if ``is_end``.
    """
    # pyarrow strips a byte order mark from each block, and accepts no NUL as separator or quote.
    if data.startswith(codecs.BOM_UTF8) or b"\0" in (dialect.separator, dialect.quote):
        return 0
    limit = _first_mark(data, dialect)
    is_whole = is_end and limit == len(data)
    if not dialect.quote or data.find(dialect.quote, 0, limit) < 0:
        return limit if is_whole else data.rfind(b"\n", 0, limit) + 1
    byte_array = np.frombuffer(data, np.uint8)[:limit]
    quotes = np.flatnonzero(byte_array == dialect.quote[0])
    first = _first_irregular(byte_array, quotes, dialect)
    if first == len(quotes) and is_whole:
        return limit
    return _last_line_end(data, quotes, int(quotes[first]) if first < len(quotes) else limit)


def _first_mark(data: bytes, dialect: Dialect) -> int:
    """The position of the first escape, comment, or carriage return without a line feed.

    Where blanks are trimmed, quotes count too, since blanks within quotes are kept.
    """
    marks = []
    if dialect.quote and (dialect.trim_left or dialect.trim_right):
        marks.append(data.find(dialect.quote))
    if dialect.escape and dialect.escape != dialect.quote:
        marks.append(data.find(dialect.escape))
    if dialect.comment:
        found = data.find(b"\n" + dialect.comment)
        marks.append(0 if data.startswith(dialect.comment) else found)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        found_return = _LONE_RETURN.search(data)
        marks.append(found_return.start() if found_return else -1)
    return min((mark for mark in marks if mark >= 0), default=len(data))


def _first_irregular(data: np.ndarray[Any, Any], quotes: Positions, dialect: Dialect) -> int:
    """The index in ``quotes`` of the first irregular opening quote; their count if there is none.

    It is irregular if it does not begin a field, or if its closing quote is missing or does not end
    the field. Doubled quotes are regular.
    """
    separator = dialect.separator[0]
    opening, closing = quotes[0::2], quotes[1::2]
    opening = opening[: len(closing)]
    doubled = (closing[:-1] + 1 == opening[1:]) & (dialect.escape == dialect.quote)
    is_right = _is_any(data, opening - 1, separator)
    if len(opening) and opening[0] == 0:
        is_right[0] = True
    is_right[1:] |= doubled
    ends = _is_any(data, np.minimum(closing + 1, len(data) - 1), separator)
    if len(closing) and closing[-1] + 1 == len(data):
        ends[-1] = True
    ends[:-1] |= doubled
    is_right &= ends
    if not dialect.multi_line:
        breaks = np.flatnonzero(data == _NEWLINE)
        is_right &= np.searchsorted(breaks, opening) == np.searchsorted(breaks, closing)
    wrong = np.flatnonzero(~is_right)
    return 2 * int(wrong[0]) if len(wrong) else len(quotes) // 2 * 2


def _last_line_end(data: bytes, quotes: Positions, limit: int) -> int:
    """The position after the last line end before ``limit`` that is not within (regular) quotes."""
    end = data.rfind(b"\n", 0, limit)
    while end >= 0:
        before = int(np.searchsorted(quotes, end))
        if before % 2 == 0:
            return end + 1
        end = data.rfind(b"\n", 0, int(quotes[before - 1]))
    return 0


def _is_any(data: np.ndarray[Any, Any], positions: Positions, separator: int) -> Any:
    at = data[positions]
    return (at == separator) | (at == _NEWLINE) | (at == _RETURN)


class RecordBounds:
    """Where the records of regular data begin and end; blank lines are not records."""

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
        """The size in bytes of the longest record."""
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
