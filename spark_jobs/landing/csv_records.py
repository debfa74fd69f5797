"""An exact CSV parser, record by record: RFC 4180 with the dialects that Spark's options define.

It is slow; ``csv_reader`` uses it where the fast parser's result is not certain. Imported by
executors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.records import Problem, shown, text_of

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_SET_ASIDE: Final = "on_bad_rows='quarantine' sets such records aside."


# Where each record is a line: the next lines may belong to the value, but other tasks cannot know.
NOT_CLOSED: Final = Problem(
    "has a quote that is not closed on its line",
    "Line breaks within quotes are read with options={'multiLine': True}, the default.",
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The special characters of a CSV file, each a single byte, or empty if there is none.

    ``escape`` precedes a quote within quotes; in RFC 4180 it is the quote itself. ``multi_line``: a
    line break within quotes belongs to the value.

    Raises:
        NotSupportedError: a character has two roles or is a line end, or there is no separator.
    """

    separator: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b'"'
    comment: bytes = b""
    multi_line: bool = True
    trim_left: bool = False
    trim_right: bool = False

    def __post_init__(self) -> None:
        roles = {"sep": self.separator, "quote": self.quote, "comment": self.comment}
        if self.escape != self.quote:
            roles["escape"] = self.escape
        given = [mark for mark in roles.values() if mark]
        if len(set(given)) < len(given) or not self.separator or set(given) & {b"\n", b"\r"}:
            shown_roles = ", ".join(f"{name} {text_of(mark)!r}" for name, mark in roles.items())
            raise NotSupportedError(
                f"CSV fields cannot be told apart by {shown_roles}.",
                "Each needs a character of its own that does not end lines; only escape may be "
                "the quote.",
            )

    @property
    def blanks(self) -> bytes:
        """The characters that are trimmed."""
        return b" \t".replace(self.separator, b"")


class Record(NamedTuple):
    """A record and its place in the data: bytes ``start`` to ``end``, without the line end.

    ``line`` is its first line in the data, from 0; ``lines`` is how many it spans. ``fields`` are
    unquoted; ``quoted`` has the indexes of those that had quotes. ``problem`` says why the record
    is bad.
    """

    start: int
    end: int
    line: int
    lines: int
    fields: Sequence[bytes]
    quoted: Collection[int] = ()
    problem: Problem | None = None


class CsvScanner:
    """Finds the records of a dialect, with expressions that are compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._blanks = dialect.blanks
        self._plain = re.compile(rb"[^" + _in_class(dialect.separator) + rb"\r\n]*")
        quote, escape = re.escape(dialect.quote), re.escape(dialect.escape)
        # A line without quotes.
        self._plain_line = re.compile(rb"[^" + _in_class(dialect.quote) + rb"\r\n]*")
        self._quoted = (
            re.compile(quote + rb"(" + _inner(dialect) + rb")" + quote) if quote else None
        )
        marks = _in_class(dialect.quote + dialect.escape)
        self._escaped = re.compile(escape + rb"([" + marks + rb"])") if escape else None

    def records(self, data: bytes, *, is_end: bool) -> Iterator[Record]:
        """All whole records of ``data``; the last line counts as whole only if ``is_end``.

        Blank lines and comments are not records.
        """
        position, line = self.skipped(data, 0, is_end=is_end)
        while position < len(data):
            record = self._record(data, position, line, is_end=is_end)
            if record is None:
                return
            yield record
            position = behind(data, record.end)
            position, lines = self.skipped(data, position, is_end=is_end)
            line += record.lines + lines

    def skipped(self, data: bytes, start: int, *, is_end: bool) -> tuple[int, int]:
        """Where the blank lines and comments at ``start`` end, and how many lines they take."""
        position, lines = start, 0
        comment = self._dialect.comment
        while position < len(data):
            if comment and data.startswith(comment, position):
                ending = _LINE_END.search(data, position)
                if ending is None and is_end:
                    return len(data), lines + 1
            else:
                ending = _LINE_END.match(data, position)
            if ending is None or (not is_end and _may_go_on(data, ending.end())):
                break
            position, lines = ending.end(), lines + 1
        return position, lines

    def _record(self, data: bytes, start: int, line: int, *, is_end: bool) -> Record | None:
        """The record that begins at ``start``; None if it may continue after ``data``."""
        match = self._plain_line.match(data, start)
        assert match is not None  # noqa: S101 - it also matches an empty text
        end = match.end()
        if end < len(data) and data[end : end + 1] == self._dialect.quote:
            return self._record_with_quotes(data, start, line, is_end=is_end)
        if not is_end and (end == len(data) or _may_go_on(data, end + 1)):
            return None
        fields = match[0].split(self._dialect.separator)
        if self._dialect.trim_left or self._dialect.trim_right:
            fields = [self._trimmed(field) for field in fields]
        return Record(start, end, line, 1, fields)

    def _record_with_quotes(
        self, data: bytes, start: int, line: int, *, is_end: bool
    ) -> Record | None:
        """Like ``_record``, field by field.

        The text after a problem is parsed by the same rules, so that a line break within later
        quotes does not begin a record.
        """
        fields: list[bytes] = []
        quoted: list[int] = []
        problem: Problem | None = None
        position = start
        while True:
            position = self._take_plain(data, position, fields)
            field_start = self._behind_blanks(data, position, are_ignored=self._dialect.trim_left)
            if self._quoted is not None and data.startswith(self._dialect.quote, field_start):
                match = self._quoted.match(data, field_start)
                if match is None:
                    return self._unclosed(data, start, field_start, line, problem, is_end=is_end)
                quoted.append(len(fields))
                fields.append(self._unescaped(match[1]))
                end = self._behind_blanks(data, match.end(), are_ignored=self._dialect.trim_right)
                problem = problem or self._problem_behind(data, field_start, match.end(), end)
                position = self._plain_end(data, end)
            else:
                end = self._plain_end(data, position)
                fields.append(self._trimmed(data[position:end]))
                position = end
            if data.startswith(self._dialect.separator, position):
                position += 1
                continue
            if not is_end and (position == len(data) or _may_go_on(data, position + 1)):
                return None
            lines = 1 + _breaks(data, start, position)
            return Record(start, position, line, lines, fields, quoted, problem)

    def _take_plain(self, data: bytes, position: int, fields: list[bytes]) -> int:
        """Add the fields before the next one that may have a quote; returns where that begins."""
        match = self._plain_line.match(data, position)
        assert match is not None  # noqa: S101 - as above
        end = match[0].rfind(self._dialect.separator)
        if end < 0:
            return position
        fields += [self._trimmed(each) for each in match[0][:end].split(self._dialect.separator)]
        return position + end + 1

    def _trimmed(self, field: bytes) -> bytes:
        if self._dialect.trim_left:
            field = field.lstrip(self._blanks)
        return field.rstrip(self._blanks) if self._dialect.trim_right else field

    def _plain_end(self, data: bytes, position: int) -> int:
        plain = self._plain.match(data, position)
        assert plain is not None  # noqa: S101 - it also matches an empty text
        return plain.end()

    def _behind_blanks(self, data: bytes, position: int, *, are_ignored: bool) -> int:
        while are_ignored and position < len(data) and data[position] in self._blanks:
            position += 1
        return position

    def _unescaped(self, text: bytes) -> bytes:
        if self._escaped is None or self._dialect.escape not in text:
            return text
        if self._dialect.escape == self._dialect.quote:
            return text.replace(self._dialect.quote * 2, self._dialect.quote)
        return self._escaped.sub(rb"\1", text)

    def _problem_behind(
        self, data: bytes, opened: int, closed: int, position: int
    ) -> Problem | None:
        """The problem if a closing quote is not followed by the end of the field."""
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
        self,
        data: bytes,
        start: int,
        opened: int,
        line: int,
        problem: Problem | None,
        *,
        is_end: bool,
    ) -> Record | None:
        """The record up to where its quote should be closed; None if more data may close it."""
        if self._dialect.multi_line:
            if not is_end:
                return None
            end = len(data)
            what = Problem("has a quote that is never closed", f"Close it. {_SET_ASIDE}")
        else:
            line_end = _LINE_END.search(data, opened)
            if not is_end and (line_end is None or _may_go_on(data, line_end.end())):
                return None
            end = line_end.start() if line_end else len(data)
            what, problem = NOT_CLOSED, None
        return Record(start, end, line, 1 + _breaks(data, start, end), (), (), problem or what)


def behind(data: bytes, end: int) -> int:
    """Where the line after a record that ends at ``end`` begins."""
    ending = _LINE_END.match(data, end)
    return ending.end() if ending else end


def _may_go_on(data: bytes, end: int) -> bool:
    """Whether ``data`` ends at ``end`` with half a line end."""
    return end == len(data) and data.endswith(b"\r")


def _inner(dialect: Dialect) -> bytes:
    """The expression for text within quotes; possessive, since backtracking never finds a match."""
    line = b"" if dialect.multi_line else rb"\r\n"
    body = rb"[^" + _in_class(dialect.quote + dialect.escape) + line + rb"]*+"
    if not dialect.escape:
        return body
    if dialect.escape == dialect.quote:
        escaped = re.escape(dialect.quote * 2)
    else:
        escaped = re.escape(dialect.escape) + (rb"[\s\S]" if dialect.multi_line else rb"[^\r\n]")
    return body + rb"(?:" + escaped + body + rb")*+"


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
