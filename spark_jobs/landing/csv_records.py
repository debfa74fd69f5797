"""CSV taken apart record by record, exactly: RFC 4180 with the dialects that Spark's options name.

The slow and precise way; ``csv_reader`` takes it where the fast one can not be sure. Imported by
executors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_jobs.landing.records import Problem, shown, text_of

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_SET_ASIDE: Final = "on_bad_rows='quarantine' sets such records aside."


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are told apart; each a single byte, empty where there is none.

    A quote within quotes has ``escape`` before it, which is the quote itself in RFC 4180.
    ``multi_line``: a line break within quotes belongs to the value.
    """

    separator: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b'"'
    comment: bytes = b""
    multi_line: bool = True
    trim_left: bool = False
    trim_right: bool = False


class Field(NamedTuple):
    """A field's bytes without quotes."""

    value: bytes
    quoted: bool


class Record(NamedTuple):
    """A record and where it stands in the data: bytes ``start`` to ``end`` without the line end.

    ``line`` counts lines of the data from 0; ``lines`` are those that it takes. Fields, or what is
    wrong.
    """

    start: int
    end: int
    line: int
    lines: int
    fields: tuple[Field, ...]
    problem: Problem | None


class CsvScanner:
    """Records of a dialect. Compiled once for a file."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        quote, escape = re.escape(dialect.quote), re.escape(dialect.escape)
        self._plain = re.compile(rb"[^" + _in_class(dialect.separator) + rb"\r\n]*")
        line = b"" if dialect.multi_line else rb"\r\n"
        if dialect.escape == dialect.quote:
            body = rb"[^" + _in_class(dialect.quote) + line + rb"]*+"
            inner = body + rb"(?:" + quote + quote + body + rb")*+"
        else:
            body = rb"[^" + _in_class(dialect.quote + dialect.escape) + line + rb"]*+"
            inner = body + rb"(?:" + escape + rb"(?:\r\n|[\s\S])" + body + rb")*+"
            if not dialect.multi_line:
                inner = inner.replace(rb"(?:\r\n|[\s\S])", rb"[^\r\n]")
        self._quoted = re.compile(quote + rb"(" + inner + rb")" + quote) if quote else None
        self._unescape = re.compile(
            escape + rb"([" + _in_class(dialect.quote + dialect.escape) + rb"])"
        )

    def records(self, data: bytes, *, is_end: bool) -> Iterator[Record]:
        """All whole records of ``data``; the last line is whole only if ``is_end``.

        Blank lines and comments are none.
        """
        position, line = 0, 0
        while position < len(data):
            ending = _LINE_END.match(data, position)
            if ending:
                if ending.end() == len(data) and ending[0] == b"\r" and not is_end:
                    return
                position, line = ending.end(), line + 1
                continue
            if self._dialect.comment and data.startswith(self._dialect.comment, position):
                found = _LINE_END.search(data, position)
                if found is None:
                    return
                position, line = found.end(), line + 1
                continue
            record = self._record(data, position, line, is_end=is_end)
            if record is None:
                return
            yield record
            ending = _LINE_END.match(data, record.end)
            position = ending.end() if ending else record.end
            line += record.lines

    def _record(self, data: bytes, start: int, line: int, *, is_end: bool) -> Record | None:
        """The record that begins at ``start``; None if it may go on behind ``data``."""
        fields: list[Field] = []
        position = start
        while True:
            field_start = self._skip_blanks(data, position)
            if self._quoted is not None and data.startswith(self._dialect.quote, field_start):
                match = self._quoted.match(data, field_start)
                if match is None:
                    return self._unclosed(data, start, field_start, line, is_end=is_end)
                fields.append(Field(self._unquoted(match[1]), True))
                position = self._skip_blanks(data, match.end(), right=True)
                problem = self._problem_behind(data, field_start, match.end(), position)
            else:
                plain = self._plain.match(data, field_start)
                assert plain is not None  # noqa: S101 - it matches no byte, too
                value = plain[0].rstrip(b" \t") if self._dialect.trim_right else plain[0]
                fields.append(Field(value, False))
                position, problem = plain.end(), None
            if problem is not None:
                return self._to_line_end(data, start, position, line, problem, is_end=is_end)
            if data.startswith(self._dialect.separator, position):
                position += 1
                continue
            at_end = position == len(data) or (position == len(data) - 1 and data.endswith(b"\r"))
            if at_end and not is_end:
                return None
            lines = 1 + _breaks(data, start, position)
            return Record(start, position, line, lines, tuple(fields), None)

    def _skip_blanks(self, data: bytes, position: int, *, right: bool = False) -> int:
        if self._dialect.trim_right if right else self._dialect.trim_left:
            while data[position : position + 1] in (b" ", b"\t"):
                position += 1
        return position

    def _unquoted(self, text: bytes) -> bytes:
        if self._dialect.escape == self._dialect.quote:
            return text.replace(self._dialect.quote * 2, self._dialect.quote)
        return self._unescape.sub(rb"\1", text)

    def _problem_behind(
        self, data: bytes, opened: int, closed: int, position: int
    ) -> Problem | None:
        """What is wrong when a closing quote is not followed by the end of the field."""
        behind = data[position : position + 1]
        if not behind or behind in (self._dialect.separator, b"\r", b"\n"):
            return None
        remedy = f"Double quotes within quotes. {_SET_ASIDE}"
        if data[closed - 2 : closed - 1] == b"\\" and self._dialect.escape != b"\\":
            remedy = (
                f"Files that write a quote as \\\" need options={{'escape': '\\\\'}}. {_SET_ASIDE}"
            )
        around = data[max(opened, closed - 20) : closed + 20].splitlines()[0]
        return Problem(f"has text behind a closing quote, at {shown(text_of(around))}", remedy)

    def _unclosed(
        self, data: bytes, start: int, opened: int, line: int, *, is_end: bool
    ) -> Record | None:
        if self._dialect.multi_line:
            if not is_end:
                return None
            problem = Problem("has a quote that is never closed", f"Close it. {_SET_ASIDE}")
            return Record(start, len(data), line, 1 + _breaks(data, start, len(data)), (), problem)
        problem = Problem(
            "has a quote that is not closed on its line",
            "Line breaks within quotes are read with options={'multiLine': True}, the default.",
        )
        return self._to_line_end(data, start, opened, line, problem, is_end=is_end)

    def _to_line_end(
        self, data: bytes, start: int, position: int, line: int, problem: Problem, *, is_end: bool
    ) -> Record | None:
        """The record up to the end of the line at ``position``, where its problem is."""
        found = _LINE_END.search(data, position)
        if found is None and not is_end:
            return None
        end = found.start() if found else len(data)
        return Record(start, end, line, 1 + _breaks(data, start, end), (), problem)


def _breaks(data: bytes, start: int, end: int) -> int:
    """How many lines end within the data."""
    part = data[start:end]
    if b"\r" not in part:
        return part.count(b"\n")
    return len(_LINE_END.findall(part))


def _in_class(characters: bytes) -> bytes:
    return b"".join(
        b"\\" + bytes([each]) if each in rb"\]^-" else bytes([each]) for each in characters
    )
