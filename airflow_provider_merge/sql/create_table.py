"""CREATE TABLE, as in Spark's grammar, with the parts of Flink's that say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.settings import read_settings
from airflow_provider_merge.sql.text import Span, SqlText
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import RequestError, error_of

# What ends the type of a column.
_AFTER_TYPE: Final = (
    *("NOT", "NULL", "COMMENT", "DEFAULT", "GENERATED", "PRIMARY", "UNIQUE", "REFERENCES"),
    *("CHECK", "CONSTRAINT", "METADATA", "AS", "FIRST", "AFTER"),
)
_CONSTRAINTS: Final = ("CONSTRAINT", "UNIQUE", "FOREIGN", "CHECK", "WATERMARK")
_INSTEAD: Final = {
    "DEFAULT": "Leave it out, and add it with Paimon's own engines: ALTER COLUMN ... SET DEFAULT.",
    "LOCATION": "Leave it out: the catalog says where its tables lie.",
    "CLUSTERED": "Write the properties bucket and bucket-key.",
    "AS": "Create the table without rows, and insert the query's in a task behind it.",
    "SELECT": "Create the table without rows, and insert the query's in a task behind it.",
    "LIKE": "Write the columns.",
}
_FORMATS: Final = ("iceberg", "paimon")
# Formats whose tables are partitioned only by columns.
_WITHOUT_TRANSFORMS: Final = ("paimon",)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(slots=True)
class _Parts:
    """What has been read of a statement."""

    columns: list[ColumnSpec] = field(default_factory=list)
    partition_keys: list[str] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    # Where the first transform of a column stands.
    transform: int | None = None


def parse_create_table(sql: str, database: str | None = None) -> tuple[TableName, CreateTableSpec]:
    """The table that ``sql`` names, and what it shall be; ``database`` as in ``parse_statement``.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
        NotSupportedError: a part that is understood but not built.
    """
    text = SqlText(sql)
    found = _Reader(text, Views(text, (), database)).read()
    text.refuse_hints()
    return found


class _Reader:
    def __init__(self, sql: SqlText, views: Views) -> None:
        self.sql = sql
        self.views = views
        self.cursor = Cursor(sql)
        self.parts = _Parts()

    def read(self) -> tuple[TableName, CreateTableSpec]:
        cursor, parts = self.cursor, self.parts
        read_settings(cursor)
        start = cursor.token.start
        cursor.expect("CREATE")
        for word in ("OR", "TEMPORARY", "EXTERNAL", "GLOBAL"):
            if cursor.at(word):
                raise self.sql.unsupported(cursor.token.start, f"CREATE {word} is not supported")
        cursor.expect("TABLE")
        # An equal table that exists is left alone in any case.
        cursor.accept("IF", "NOT", "EXISTS")
        target = self.views.table(cursor.name("the name of the table"))
        if cursor.at_symbol("("):
            self._columns()
        while not (cursor.token.kind == "end" or cursor.at_symbol(";")):
            self._clause()
        cursor.accept_symbol(";")
        if cursor.token.kind != "end":
            raise self.sql.error(cursor.token.start, "a second statement begins")
        if parts.transform is not None and parts.format in _WITHOUT_TRANSFORMS:
            problem = f"tables of {parts.format} are partitioned by columns, not by transforms"
            raise self.sql.unsupported(parts.transform, problem, "Give it a column of its own.")
        try:
            spec = CreateTableSpec(
                tuple(parts.columns),
                tuple(parts.partition_keys),
                tuple(parts.primary_key),
                parts.options,
                parts.comment,
                parts.format,
            )
        except RequestError as error:
            text = self.sql.at(start, error.message)
            raise error_of(error.code, text, error.remedy) from None
        return target, spec

    def _columns(self) -> None:
        cursor = self.cursor
        closing = self.sql.closing[cursor.index]
        cursor.expect_symbol("(")
        while True:
            if cursor.accept("PRIMARY", "KEY"):
                self.parts.primary_key += self._names()
                cursor.accept("NOT", "ENFORCED")
            elif cursor.token.is_word(*_CONSTRAINTS):
                raise self._unsupported(cursor.token)
            else:
                self.parts.columns.append(self._column(closing))
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")

    def _column(self, closing: int) -> ColumnSpec:
        cursor = self.cursor
        place = cursor.token.start
        name = self._name()
        cursor.accept_symbol(":")
        type_ = self._type(closing)
        nullable, comment = True, None
        while not (cursor.index == closing or cursor.at_symbol(",")):
            if cursor.accept("NOT", "NULL"):
                nullable = False
            elif cursor.accept("COMMENT"):
                comment = self._string()
            elif cursor.accept("PRIMARY", "KEY"):
                self.parts.primary_key.append(name)
                cursor.accept("NOT", "ENFORCED")
            elif not cursor.accept("NULL"):
                raise self._unsupported(cursor.token)
        try:
            return ColumnSpec(name, type_, nullable, comment)
        except RequestError as error:
            text = self.sql.at(place, error.message)
            raise error_of(error.code, text, error.remedy) from None

    def _type(self, closing: int) -> str:
        """The text of a type, in which commas and words may stand within brackets."""
        cursor, first, depth = self.cursor, self.cursor.index, 0
        if cursor.token.is_word(*_AFTER_TYPE):
            raise self._unsupported(cursor.token)
        while cursor.index < closing:
            token = cursor.token
            if depth == 0 and (token.is_symbol(",") or token.is_word(*_AFTER_TYPE)):
                break
            if token.kind == "symbol":
                depth += token.text.count("<") - token.text.count(">")
            cursor.index = self.sql.closing.get(cursor.index, cursor.index) + 1
        if cursor.index == first:
            raise cursor.unexpected("the type of the column")
        return self.sql.slice(Span(first, cursor.index))

    def _clause(self) -> None:
        cursor, parts = self.cursor, self.parts
        if cursor.accept("USING"):
            format_ = cursor.token
            parts.format = self._name().lower()
            if parts.format not in _FORMATS:
                problem = f"tables of {format_.text} are not supported"
                remedy = f"Use one of: {', '.join(_FORMATS)}."
                raise self.sql.unsupported(format_.start, problem, remedy)
        elif cursor.accept("PARTITIONED", "BY"):
            self._partition_keys()
        elif cursor.accept("COMMENT"):
            parts.comment = self._string()
        elif cursor.accept("TBLPROPERTIES") or cursor.accept("WITH") or cursor.accept("OPTIONS"):
            self._options()
        else:
            raise self._unsupported(cursor.token)

    def _partition_keys(self) -> None:
        """Names, transforms, or typed columns as Hive has them, which then are the last ones."""
        cursor = self.cursor
        closing = self.sql.closing.get(cursor.index, cursor.index)
        cursor.expect_symbol("(")
        while True:
            name = self.sql.tokens[cursor.index : cursor.index + 2]
            if len(name) == 2 and name[1].is_symbol("("):
                if self.parts.transform is None:
                    self.parts.transform = name[0].start
                first = cursor.index
                cursor.index = self.sql.closing[first + 1] + 1
                self.parts.partition_keys.append(self.sql.slice(Span(first, cursor.index)))
            elif len(name) == 2 and name[1].is_symbol(",", ")"):
                self.parts.partition_keys.append(self._name())
            else:
                column = self._column(closing)
                self.parts.columns.append(column)
                self.parts.partition_keys.append(column.name)
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")

    def _options(self) -> None:
        cursor = self.cursor
        cursor.expect_symbol("(")
        while True:
            if cursor.token.kind == "string":
                key = self._string()
            else:
                key = ".".join(part.name for part in cursor.name("the name of a property"))
            cursor.accept_symbol("=")
            self.parts.options[key] = self._value()
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")

    def _value(self) -> str:
        cursor = self.cursor
        if cursor.token.kind == "string":
            return self._string()
        sign = "-" if cursor.accept_symbol("-") else ""
        if cursor.token.kind not in ("number", "word"):
            raise cursor.unexpected("the value of a property")
        cursor.index += 1
        return sign + self.sql.tokens[cursor.index - 1].text

    def _name(self) -> str:
        place = self.cursor.token.start
        parts = self.cursor.name("a name")
        if len(parts) != 1:
            raise self.sql.error(place, f"expected a name, found one of {len(parts)} parts")
        return parts[0].name

    def _names(self) -> list[str]:
        cursor = self.cursor
        cursor.expect_symbol("(")
        found = [self._name()]
        while cursor.accept_symbol(","):
            found.append(self._name())
        cursor.expect_symbol(")")
        return found

    def _string(self) -> str:
        token = self.cursor.token
        if token.kind != "string":
            raise self.cursor.unexpected("a text in quotes")
        self.cursor.index += 1
        if token.text[0] in "rR":
            return token.text[2:-1]
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), token.text[1:-1])

    def _unsupported(self, token: Token) -> Exception:
        remedy = _INSTEAD.get(token.text.upper(), "Leave it out.")
        return self.sql.unsupported(token.start, f"{token.text} is not supported here", remedy)
