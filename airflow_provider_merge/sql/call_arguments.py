"""CALL: the procedure that is named, and its arguments, by name or by position."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.definitions import DefinitionReader
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError

_NUMBER: Final = re.compile(r"\d+L?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Argument:
    """A value: text, a number, a boolean, None for NULL, or a dict of texts; where it stands."""

    value: Any
    start: int


@dataclass(frozen=True, slots=True)
class Call:
    """``CALL name(arguments)``; ``named`` in lower case. ``time_zone``: of times without offset."""

    sql: SqlText
    name: tuple[str, ...]
    positional: Sequence[Argument]
    named: Mapping[str, Argument]
    time_zone: str

    def by_name(self, parameters: Sequence[str], ordered: int) -> dict[str, Argument]:
        """The arguments by name, without those that are NULL.

        ``ordered``: how many of ``parameters`` have a place.

        Raises:
            RequestError: REQUEST_INVALID: there is no such argument, or it is given twice.
        """
        arguments = dict(zip(parameters, self.positional, strict=False))
        if len(self.positional) > ordered:
            raise self.wrong(
                self.positional[ordered], f"argument {ordered + 1} has no name", "Write name => ..."
            )
        for name, argument in self.named.items():
            if name not in parameters:
                known = ", ".join(parameters)
                raise self.wrong(
                    argument, f"{self.name[-1]} has no argument {name}", f"Known: {known}."
                )
            if name in arguments:
                raise self.wrong(argument, f"{name} is given twice")
            arguments[name] = argument
        return {name: each for name, each in arguments.items() if each.value is not None}

    def wrong(self, at: Argument, problem: str, remedy: str = "") -> JobError:
        """The error of an argument."""
        return self.sql.error(at.start, problem, remedy, ErrorCode.REQUEST_INVALID)

    def unsupported(self, at: Argument, name: str, remedy: str) -> NotSupportedError:
        """The refusal of an argument that has no equal here."""
        problem = f"the argument {name} of {self.name[-1]} is not supported"
        return self.sql.unsupported(at.start, problem, remedy)

    def text(self, at: Argument) -> str:
        """A text."""
        if not isinstance(at.value, str):
            raise self.wrong(at, "expected a text in quotes")
        return at.value

    def number(self, at: Argument) -> int:
        """A whole number, perhaps as text."""
        if isinstance(at.value, bool) or not _NUMBER.fullmatch(str(at.value)):
            raise self.wrong(at, "expected a whole number")
        return int(str(at.value).rstrip("lL"))

    def flag(self, at: Argument) -> bool:
        """TRUE or FALSE."""
        if not isinstance(at.value, bool):
            raise self.wrong(at, "expected TRUE or FALSE")
        return at.value

    def moment(self, at: Argument) -> str:
        """A timestamp with its offset; one without has that of the session's time zone."""
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            moment = datetime.fromisoformat(self.text(at).strip())
        except ValueError:
            raise self.wrong(at, "expected TIMESTAMP '2026-01-31 00:00:00'") from None
        if moment.tzinfo is None:
            try:
                moment = moment.replace(tzinfo=ZoneInfo(self.time_zone))
            except (ZoneInfoNotFoundError, ValueError):
                problem = f"{self.time_zone} is not a time zone that is known here"
                raise self.wrong(at, problem, "Write the time with an offset.") from None
        return moment.isoformat()


def read_call(sql: SqlText, time_zone: str) -> Call:
    """A whole CALL.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
    """
    reader = DefinitionReader(sql)
    cursor = reader.cursor
    cursor.expect("CALL")
    name = tuple(each.name for each in cursor.name("the name of a procedure"))
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    cursor.expect_symbol("(")
    while not cursor.accept_symbol(")"):
        if positional or named:
            cursor.expect_symbol(",")
        key, start = _key(cursor), cursor.token.start
        argument = Argument(_value(reader), start)
        if key is None and named:
            raise sql.error(start, "an argument without a name stands behind one that has one")
        if key is None:
            positional.append(argument)
        elif key in named:
            raise sql.error(start, f"{key} is given twice", "", ErrorCode.REQUEST_INVALID)
        else:
            named[key] = argument
    cursor.expect_end()
    return Call(sql, name, positional, named, time_zone)


def _key(cursor: Cursor) -> str | None:
    """The name in front of ``=>``, if there is one."""
    arrow = cursor.sql.tokens[cursor.index + 1]
    if not (cursor.token.is_name and arrow.is_symbol("=>")):
        return None
    name = cursor.token.name.lower()
    cursor.index += 2
    return name


def _value(reader: DefinitionReader) -> Any:
    cursor = reader.cursor
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    if cursor.accept("NULL"):
        return None
    if cursor.accept("MAP"):
        return _pairs(reader)
    cursor.accept("TIMESTAMP")
    if cursor.token.kind == "string":
        return reader.string()
    sign = "-" if cursor.accept_symbol("-") else ""
    if cursor.token.kind != "number":
        raise cursor.unexpected("a literal")
    cursor.index += 1
    return sign + cursor.sql.tokens[cursor.index - 1].text


def _pairs(reader: DefinitionReader) -> dict[str, str]:
    cursor, pairs = reader.cursor, dict[str, str]()
    cursor.expect_symbol("(")
    while not cursor.accept_symbol(")"):
        if pairs:
            cursor.expect_symbol(",")
        key = str(_value(reader))
        cursor.expect_symbol(",")
        pairs[key] = str(_value(reader))
    return pairs
