"""What statements that define tables have in common: types, names, texts and properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.text import Span, SqlText
from spark_jobs.errors import RequestError, error_of

# What ends the type of a column.
AFTER_TYPE: Final = (
    *("NOT", "NULL", "COMMENT", "DEFAULT", "GENERATED", "PRIMARY", "UNIQUE", "REFERENCES"),
    *("CHECK", "CONSTRAINT", "METADATA", "AS", "FIRST", "AFTER"),
)
_AFTER_DEFAULT: Final = ("NOT", "COMMENT", "PRIMARY", "FIRST", "AFTER")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class DefinitionReader:
    """Reads parts of a definition at a cursor.

    Its methods raise RequestError with line and column: SYNTAX_ERROR or REQUEST_INVALID.
    """

    def __init__(self, sql: SqlText) -> None:
        self.sql = sql
        self.cursor = Cursor(sql)

    @contextmanager
    def at(self, place: int) -> Iterator[None]:
        """Errors of the contract's objects show the place in the text."""
        try:
            yield
        except RequestError as error:
            text = self.sql.at(place, error.message)
            raise error_of(error.code, text, error.remedy) from None

    def type(self, closing: int) -> str:
        """The text of a type, in which commas and words may stand within brackets."""
        cursor, first, depth = self.cursor, self.cursor.index, 0
        while cursor.index < closing:
            token = cursor.token
            if depth == 0 and (token.is_symbol(",") or token.is_word(*AFTER_TYPE)):
                break
            if token.kind == "symbol":
                depth += token.text.count("<") - token.text.count(">")
            cursor.index = self.sql.closing.get(cursor.index, cursor.index) + 1
        if cursor.index == first:
            raise cursor.unexpected("the type of the column")
        return self.sql.slice(Span(first, cursor.index))

    def default(self, closing: int) -> str:
        """The text of the literal behind DEFAULT."""
        cursor = self.cursor
        end = self.sql.expression_end(Span(cursor.index, closing), _AFTER_DEFAULT, comma=True)
        if end == cursor.index:
            raise cursor.unexpected("a literal")
        text = self.sql.slice(Span(cursor.index, end))
        cursor.index = end
        return text

    def properties(self) -> dict[str, str]:
        """Keys and values in parentheses."""
        cursor, properties = self.cursor, {}
        cursor.expect_symbol("(")
        while True:
            key = self.key()
            cursor.accept_symbol("=")
            properties[key] = self._value()
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")
        return properties

    def key(self) -> str:
        """The key of a property."""
        if self.cursor.token.kind == "string":
            return self.string()
        return ".".join(part.name for part in self.cursor.name("the name of a property"))

    def _value(self) -> str:
        cursor = self.cursor
        if cursor.token.kind == "string":
            return self.string()
        sign = "-" if cursor.accept_symbol("-") else ""
        if cursor.token.kind not in ("number", "word"):
            raise cursor.unexpected("the value of a property")
        cursor.index += 1
        return sign + self.sql.tokens[cursor.index - 1].text

    def name(self) -> str:
        """A name of one part."""
        place = self.cursor.token.start
        parts = self.cursor.name("a name")
        if len(parts) != 1:
            raise self.sql.error(place, f"expected a name, found one of {len(parts)} parts")
        return parts[0].name

    def names(self) -> list[str]:
        """Names in parentheses."""
        cursor = self.cursor
        cursor.expect_symbol("(")
        names = [self.name()]
        while cursor.accept_symbol(","):
            names.append(self.name())
        cursor.expect_symbol(")")
        return names

    def string(self) -> str:
        """A text in quotes, without them."""
        token = self.cursor.token
        if token.kind != "string":
            raise self.cursor.unexpected("a text in quotes")
        self.cursor.index += 1
        if token.text[0] in "rR":
            return token.text[2:-1]
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), token.text[1:-1])
