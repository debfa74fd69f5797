"""A text of several statements, as people run it with spark-sql: each as a statement of a list.

Statements end with a semicolon. SET, USE and views hold for those behind them, up to the end of the
text. Everything else becomes the operation and the parameters of one statement of a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_provider_merge.sql.calls import read_procedure
from airflow_provider_merge.sql.create_table import is_created_as
from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.parser import ParsedStatement, parse_statement
from airflow_provider_merge.sql.script_refusals import refused
from airflow_provider_merge.sql.script_settings import ScriptSettings
from airflow_provider_merge.sql.script_views import ScriptViews, full_name
from airflow_provider_merge.sql.text import SqlText, without_mark
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode

# What spark-sql replaces in a text, also inside of strings.
_VARIABLE: Final = re.compile(r"\$\{[^{}\s]*\}")
# Statements that change rows; what they mean, their own parser reads.
_DROP: Final = "drop_table"
_TIME_ZONE: Final = JobOptions().session_time_zone
_OF_ROWS: Final = ("MERGE", "UPDATE", "DELETE", "INSERT", "TRUNCATE", "WITH")


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """A statement of a list: the operation, and the parameters of its operator.

    ``line`` is that in which it begins, from 1.
    """

    operation: str
    parameters: Mapping[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class Script:
    """What a text does.

    ``named`` are tables that stand for catalogs that USE and CALL name; ``read`` the given sources
    that are read; ``formats`` those of the tables that CALL is for, and the first line of each;
    ``conf`` what SET sets for the whole job.
    """

    statements: tuple[ScriptStatement, ...]
    named: tuple[TableName, ...]
    read: frozenset[str]
    formats: Mapping[str, int]
    conf: Mapping[str, str]


def read_script(
    text: str, sources: Mapping[str, Any] | None = None, database: str | None = None
) -> Script:
    """The statements of ``text``, in their order.

    ``sources`` are plain dicts by the names that statements may read like tables; ``database`` is
    that of tables which are named without one.

    Raises:
        JobError: the first statement that cannot be run, with line and column.
    """
    return ScriptReader(sources or {}, database).read(text)


def pieces(text: str) -> Iterator[str]:
    """The statements of ``text``, each at its line and column: only blanks stand before it.

    Raises:
        RequestError: SYNTAX_ERROR, when the text cannot be split into tokens.
    """
    text = without_mark(text)
    for start, end in spans(text):
        yield _at_its_place(text, start, end)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each statement begins and ends in a text without a byte order mark.

    Raises as ``pieces`` does.
    """
    begin: Token | None = None
    tokens = SqlText(text).tokens
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind != "end" and not token.is_symbol(";"):
            begin = begin or token
        elif begin is not None and before is not None:
            yield begin.start, before.end
            begin = None


def _at_its_place(text: str, start: int, end: int) -> str:
    lines = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    return "\n" * lines + " " * column + text[start:end]


@dataclass(slots=True)
class ScriptReader:
    """Reads a text, or its statements one by one; what has been said holds for the next one."""

    sources: Mapping[str, Any]
    database: str | None
    settings: ScriptSettings = field(default_factory=ScriptSettings)
    views: ScriptViews = field(init=False)
    named: list[TableName] = field(default_factory=list)
    formats: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = ScriptViews(self.sources)

    def read(self, text: str) -> Script:
        """All statements; raises as ``read_script`` does."""
        found = (self.statement(piece) for piece in pieces(text))
        statements = tuple(each for each in found if each is not None)
        read = frozenset(self.views.used)
        return Script(statements, tuple(self.named), read, self.formats, self.settings.conf)

    def statement(self, piece: str) -> ScriptStatement | None:
        """One of ``pieces``; None: it only matters for those behind it. Raises as ``read``."""
        sql = SqlText(piece)
        refuse_variables(sql)
        cursor = Cursor(sql)
        silent: dict[tuple[str, ...], Callable[[Cursor], None]] = {
            ("SET",): self.settings.read,
            ("USE",): self._use,
            ("DROP", "VIEW"): self.views.drop,
        }
        for words, act in silent.items():
            if cursor.accept(*words):
                act(cursor)
                cursor.expect_end()
                return None
        if self.views.defines(cursor):
            self.views.define(sql, self.database, self.settings.time_zone)
            return None
        return self._statement(sql, cursor)

    def _statement(self, sql: SqlText, cursor: Cursor) -> ScriptStatement:
        if _drops_partitions(sql) or is_created_as(sql) or cursor.token.is_word(*_OF_ROWS):
            return self._of_rows(sql)
        if cursor.at("CREATE", "TABLE"):
            parameters = self._text(sql)
            if _has(sql, 2, "IF", "NOT", "EXISTS"):
                parameters["keep_existing"] = True
            return _statement(sql, "create_table", parameters)
        if cursor.at("CALL"):
            return self._call(sql)
        if cursor.accept("DROP", "TABLE"):
            return self._drop(cursor)
        if cursor.accept("ALTER", "TABLE") or cursor.accept("COMMENT", "ON", "TABLE"):
            self._refuse_view(cursor)
            return _statement(sql, "alter_table", self._text(sql))
        raise refused(sql)

    def _call(self, sql: SqlText) -> ScriptStatement:
        call = read_procedure(sql, self.database, self.settings.time_zone or _TIME_ZONE)
        statement = _statement(sql, call.operation, call.parameters)
        self.formats.setdefault(call.format, statement.line)
        if call.catalog:
            self.named.append(TableName("system", "*", call.catalog))
        return statement

    def _drop(self, cursor: Cursor) -> ScriptStatement:
        sql = cursor.sql
        if_exists = cursor.accept("IF", "EXISTS")
        parts = self._refuse_view(cursor, "Write DROP VIEW.")
        table = Views(sql, (), self.database).table(parts)
        purge = cursor.accept("PURGE")
        cursor.expect_end()
        parameters = {"target": full_name(table), "if_exists": if_exists, "purge": purge}
        return _statement(sql, _DROP, parameters)

    def _refuse_view(
        self, cursor: Cursor, remedy: str = "Write the name of a table with its database."
    ) -> tuple[Token, ...]:
        """The parts of the name that comes next, which is not that of a view."""
        start, parts = cursor.token.start, cursor.name("the name of the table")
        if len(parts) == 1 and self.views.has(parts[0].name):
            problem = f"{parts[0].text} is a temporary view"
            raise cursor.sql.error(start, problem, remedy, ErrorCode.REQUEST_INVALID)
        return parts

    def _of_rows(self, sql: SqlText) -> ScriptStatement:
        parsed = parse_statement(sql.text, self.views.names, self.database)
        self._refuse_view_as_target(sql, parsed)
        parameters = self._text(sql)
        parameters |= self.settings.of_statement(parsed.overwrites, parsed.statement)
        sources = self.views.sources_of(sql, parsed.read, self.settings.time_zone)
        if sources:
            parameters["sources"] = sources
        overwrites = isinstance(parsed.statement, InsertOverwriteSpec)
        operation = "insert_overwrite" if overwrites else "sql"
        return _statement(sql, operation, parameters)

    def _text(self, sql: SqlText) -> dict[str, Any]:
        named = {} if self.database is None else {"database": self.database}
        return {"sql": sql.text, **named}

    def _refuse_view_as_target(self, sql: SqlText, parsed: ParsedStatement) -> None:
        for name in sorted(parsed.bare & {each.lower() for each in self.views.names}):
            raise sql.error(
                sql.tokens[0].start,
                f"{name} is a view or a source here, which no statement can change",
                "Write the name of a table with its database.",
                ErrorCode.REQUEST_INVALID,
            )

    def _use(self, cursor: Cursor) -> None:
        """``USE database`` or ``USE catalog.database``; a catalog is that of the connection."""
        sql = cursor.sql
        if cursor.at("CATALOG"):
            raise sql.unsupported(
                cursor.token.start, "USE CATALOG is not supported", "Write USE catalog.database."
            )
        for word in ("NAMESPACE", "DATABASE", "SCHEMA"):
            cursor.accept(word)
        start = cursor.token.start
        parts = cursor.name("the name of a database")
        if len(parts) > 2:
            raise sql.error(start, "expected database or catalog.database")
        self.database = parts[-1].name
        if len(parts) == 2:
            self.named.append(TableName(parts[1].name, "*", parts[0].name))


def _statement(sql: SqlText, operation: str, parameters: Mapping[str, Any]) -> ScriptStatement:
    line = sql.text.count("\n", 0, sql.tokens[0].start) + 1
    return ScriptStatement(operation, parameters, line)


def _has(sql: SqlText, index: int, *words: str) -> bool:
    cursor = Cursor(sql)
    cursor.index = index
    return cursor.at(*words)


def _drops_partitions(sql: SqlText) -> bool:
    """Whether this is ALTER TABLE … DROP PARTITION, but no PARTITION FIELD."""
    cursor = Cursor(sql)
    if not cursor.accept("ALTER", "TABLE") or not cursor.token.is_name:
        return False
    cursor.name("the name of the table")
    drops = cursor.accept("DROP")
    cursor.accept("IF", "EXISTS")
    return drops and cursor.at("PARTITION") and not cursor.at("PARTITION", "FIELD")


def refuse_variables(sql: SqlText) -> None:
    """Refuse ``${name}``, which spark-sql replaces; raises NotSupportedError."""
    places = [(each.start, each.text) for each in sql.tokens if each.kind in ("string", "quoted")]
    places += [(each.start, sql.text[each.start :]) for each in sql.tokens if each.text == "$"]
    for start, text in places:
        variable = _VARIABLE.search(text)
        if variable is not None:
            raise sql.unsupported(
                start,
                f"{variable[0]} is a variable of spark-sql, which nothing replaces here",
                "Write a template of Airflow: {{ ds }}, {{ params.name }}.",
            )


def outline(text: str) -> tuple[str, ...]:
    """The first word of each statement; raises as ``pieces`` does."""
    return tuple(piece.split(maxsplit=1)[0].upper() for piece in pieces(text))
