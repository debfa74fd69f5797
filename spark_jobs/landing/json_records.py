"""An exact JSON parser: values, and records with their positions.

Imported by executors. Numbers stay texts, so that none loses digits and none takes more than linear
time. Objects are lists of pairs, so that duplicate names are seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any, Final, NamedTuple

from spark_jobs.landing.records import NOT_UTF8, Problem

_SET_ASIDE: Final = "on_bad_rows='quarantine' sets such records aside."
_OBJECT_REMEDY: Final = f"Correct the file; {_SET_ASIDE}"
_JSON_REMEDY: Final = (
    f"Correct the file; options={{'multiLine': True}} reads values that span lines; {_SET_ASIDE}"
)
_TOO_DEEP: Final = "it is nested too deep"
# Python 3.11 parses about 980 levels, later versions more.
_DEEPEST: Final = 900
_BLANK: Final = " \t\r\n"
_BLANKS: Final = re.compile(f"[{_BLANK}]*")


class Number(str):
    """A number, ``NaN`` or ``Infinity``, as written in the text."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object's names and values. ``span``: a text, and the object's start and end in it."""

    __slots__ = ("span",)
    span: tuple[str, int, int]


class Elements(list[Any]):
    """An array whose position is known; ``span`` is as in ``Members``."""

    __slots__ = ("span",)
    span: tuple[str, int, int]


class Record(NamedTuple):
    """A candidate for a record: an object, or the reason why it is not one.

    ``line`` counts the line ends before it; ``raw`` has its bytes.
    """

    line: int
    raw: bytes
    members: Members | None
    problem: Problem | None = None


class NotJsonError(ValueError):
    """A text is not JSON; the message says why."""


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number
)


def decoded(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at ``start``, and where it ends; arrays are plain lists.

    Raises:
        NotJsonError: there is none, or it is nested too deep.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at").rstrip(": ")
        raise NotJsonError(f"{reason} at character {error.pos + 1}") from None
    except RecursionError:
        raise NotJsonError(_TOO_DEEP) from None
    openings = text.count("{", start, end) + text.count("[", start, end)
    if openings > _DEEPEST and _is_deeper(value, _DEEPEST):
        raise NotJsonError(_TOO_DEEP)
    return value, end


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and arrays nest more than ``levels`` deep."""
    level = [value]
    for _ in range(levels):
        level = [
            part[1] if isinstance(whole, Members) else part
            for whole in level
            if isinstance(whole, list)
            for part in whole
        ]
    return any(isinstance(part, list) for part in level)


def located(text: str, start: int = 0) -> tuple[Any, int]:
    """Like ``decoded``, with the positions of objects and arrays; slower, and only for valid JSON.

    Raises:
        NotJsonError: it is nested too deep.
    """
    try:
        return _located(text, _behind_blanks(text, start))
    except RecursionError:
        raise NotJsonError(_TOO_DEEP) from None


def _located(text: str, start: int) -> tuple[Any, int]:
    if text[start] not in "[{":
        return _DECODER.raw_decode(text, start)
    container: Any = Members() if text[start] == "{" else Elements()
    position = _behind_blanks(text, start + 1)
    while text[position] not in "]}":
        if text[start] == "{":
            name, position = _DECODER.raw_decode(text, position)
            position = _behind_blanks(text, _behind_blanks(text, position) + 1)
            value, position = _located(text, position)
            container.append((name, value))
        else:
            value, position = _located(text, position)
            container.append(value)
        position = _behind_blanks(text, position)
        if text[position] == ",":
            position = _behind_blanks(text, position + 1)
    container.span = (text, start, position + 1)
    return container, position + 1


def line_records(data: bytes) -> Iterator[Record]:
    """The records of whole lines: each has one, or an array of them, or is blank."""
    for line, whole in enumerate(data.splitlines()):
        raw = whole.strip(_BLANK.encode())
        if not raw:
            continue
        try:
            text = raw.decode("utf-8")
            if text[0] == "{":
                value, end = decoded(text, 0)
                _require_end(text, end)
                yield Record(line, raw, value)
                continue
            found = list(_only_value(text))
        except UnicodeDecodeError:
            yield Record(line, raw, None, NOT_UTF8)
        except NotJsonError as error:
            yield Record(line, raw, None, _not_json(error))
        else:
            yield from (
                _record(line, text[start:end].encode(), value) for start, end, value in found
            )


def file_records(data: bytes) -> Iterator[Record]:
    """The records of a whole file: values one after another, objects or arrays of objects.

    Where the JSON becomes invalid, the rest of the file is one bad record.
    """
    # A byte that is not UTF-8 becomes half of a surrogate pair, which UTF-8 cannot contain.
    text = data.decode("utf-8", errors="surrogateescape")
    values = _values(text)
    line = counted = end = 0
    while True:
        problem = None
        try:
            start, end, value = next(values)
        except StopIteration:
            return
        except NotJsonError as error:
            start, end, value = _behind_blanks(text, end), len(text), None
            problem = _not_json(error)
        line += text.count("\n", counted, start)
        counted = start
        raw = text[start:end].encode("utf-8", errors="surrogateescape")
        if not _is_utf8(raw):
            problem = NOT_UTF8
        yield _record(line, raw, value) if problem is None else Record(line, raw, None, problem)


_Located = tuple[int, int, Any]


def _only_value(text: str) -> Iterator[_Located]:
    _require_end(text, (yield from _value(text, 0)))


def _values(text: str) -> Iterator[_Located]:
    position = _behind_blanks(text, 0)
    while position < len(text):
        position = _behind_blanks(text, (yield from _value(text, position)))


def _value(text: str, start: int) -> Generator[_Located, None, int]:
    """The records of a value: itself, or the elements of an array. Returns where it ends."""
    if text[start] != "[":
        value, end = decoded(text, start)
        yield start, end, value
        return end
    position = _behind_blanks(text, start + 1)
    is_over = text.startswith("]", position)
    while not is_over:
        value, end = decoded(text, position)
        yield position, end, value
        position = _behind_blanks(text, end)
        is_over = text.startswith("]", position)
        if not is_over and not text.startswith(",", position):
            raise NotJsonError(f"an array is not closed at character {position + 1}")
        if not is_over:
            position = _behind_blanks(text, position + 1)
    return position + 1


def _record(line: int, raw: bytes, value: Any) -> Record:
    if isinstance(value, Members):
        return Record(line, raw, value)
    return Record(line, raw, None, Problem("is not a JSON object", _OBJECT_REMEDY))


def _require_end(text: str, end: int) -> None:
    if end != len(text):
        raise NotJsonError(f"another text follows at character {end + 1}")


def _behind_blanks(text: str, start: int) -> int:
    match = _BLANKS.match(text, start)
    assert match is not None  # noqa: S101 - it also matches an empty text
    return match.end()


def _not_json(error: NotJsonError) -> Problem:
    return Problem(f"is not valid JSON: {error}", _JSON_REMEDY)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
