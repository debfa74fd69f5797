"""CREATE TABLE, as in Spark's grammar, with the parts of Flink's that say the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.definitions import AFTER_TYPE, DefinitionReader
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.queries import QUERY_WORDS
from airflow_provider_merge.sql.settings import read_settings
from airflow_provider_merge.sql.text import Span, SqlText
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.inserts import NewTable, WhenExists
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec

_CONSTRAINTS: Final = ("CONSTRAINT", "UNIQUE", "FOREIGN", "CHECK", "WATERMARK")
_QUERY: Final = (
    "Run it with InsertIntoOperator, or in a list of statements; or give the query to "
    "CreateTableOperator(like=sql_source(...))."
)
_INSTEAD: Final = {
    "LOCATION": "Leave it out: the catalog says where its tables lie.",
    "CLUSTERED": "Write the properties bucket and bucket-key.",
    "AS": _QUERY,
    "SELECT": _QUERY,
}
_FORMATS: Final = ("iceberg", "paimon")
# Formats whose tables are partitioned only by columns.
_WITHOUT_TRANSFORMS: Final = ("paimon",)


@dataclass(slots=True)
class _Parts:
    """What has been read of a statement."""

    columns: list[ColumnSpec] = field(default_factory=list)
    partition_keys: list[str] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    like: str | None = None
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


def is_created_as(sql: SqlText) -> bool:
    """Whether this is CREATE [OR REPLACE] TABLE with a query."""
    cursor = Cursor(sql)
    if not (cursor.accept("CREATE", "TABLE") or cursor.accept("CREATE", "OR", "REPLACE", "TABLE")):
        return False
    while cursor.token.kind != "end":
        if cursor.token.is_word("AS", *QUERY_WORDS) and not cursor.at("WITH"):
            return True
        cursor.index = sql.closing.get(cursor.index, cursor.index) + 1
    return False


def read_created_as(sql: SqlText, views: Views) -> tuple[TableName, NewTable, int]:
    """The table that CREATE TABLE ... AS makes, and the index of its query's first token.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
        NotSupportedError: a part that is understood but not built.
    """
    return _Reader(sql, views).read_as()


class _Reader(DefinitionReader):
    def __init__(self, sql: SqlText, views: Views) -> None:
        super().__init__(sql)
        self.views = views
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
        self._refuse_transforms()
        with self.at(start):
            spec = CreateTableSpec(
                tuple(parts.columns),
                tuple(parts.partition_keys),
                tuple(parts.primary_key),
                parts.options,
                parts.comment,
                parts.format,
                parts.like,
            )
        return target, spec

    def read_as(self) -> tuple[TableName, NewTable, int]:
        cursor, parts = self.cursor, self.parts
        start = cursor.token.start
        cursor.expect("CREATE")
        when: WhenExists = "replace" if cursor.accept("OR", "REPLACE") else "fail"
        cursor.expect("TABLE")
        if when == "fail" and cursor.accept("IF", "NOT", "EXISTS"):
            when = "keep"
        target = self.views.table(cursor.name("the name of the table"))
        if cursor.at_symbol("("):
            raise self.sql.unsupported(
                cursor.token.start,
                "the columns of CREATE TABLE ... AS are those of its query",
                "Name and cast them there; or create the table, then INSERT.",
            )
        while not self._at_query():
            self._clause()
        cursor.accept("AS")
        self._refuse_transforms()
        with self.at(start):
            new = NewTable(
                tuple(parts.partition_keys), parts.options, parts.comment, parts.format, when
            )
        return target, new, cursor.index

    def _at_query(self) -> bool:
        """Whether the query comes next; WITH may also begin properties, as in Flink."""
        if self.cursor.at("WITH"):
            return not self.sql.tokens[self.cursor.index + 1].is_symbol("(")
        return self.cursor.token.is_word("AS", *QUERY_WORDS)

    def _refuse_transforms(self) -> None:
        parts = self.parts
        if parts.transform is not None and parts.format in _WITHOUT_TRANSFORMS:
            problem = f"tables of {parts.format} are partitioned by columns, not by transforms"
            raise self.sql.unsupported(parts.transform, problem, "Give it a column of its own.")

    def _columns(self) -> None:
        cursor = self.cursor
        closing = self.sql.closing[cursor.index]
        cursor.expect_symbol("(")
        while True:
            if cursor.accept("PRIMARY", "KEY"):
                self.parts.primary_key += self.names()
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
        name = self.name()
        cursor.accept_symbol(":")
        if cursor.token.is_word(*AFTER_TYPE):
            raise self._unsupported(cursor.token)
        type_ = self.type(closing)
        nullable, comment, default = True, None, None
        while not (cursor.index == closing or cursor.at_symbol(",")):
            if cursor.accept("NOT", "NULL"):
                nullable = False
            elif cursor.accept("COMMENT"):
                comment = self.string()
            elif cursor.accept("DEFAULT"):
                default = self.default(closing)
            elif cursor.accept("PRIMARY", "KEY"):
                self.parts.primary_key.append(name)
                cursor.accept("NOT", "ENFORCED")
            elif not cursor.accept("NULL"):
                raise self._unsupported(cursor.token)
        with self.at(place):
            return ColumnSpec(name, type_, nullable, comment, default)

    def _clause(self) -> None:
        cursor, parts = self.cursor, self.parts
        if cursor.accept("USING"):
            format_ = cursor.token
            parts.format = self.name().lower()
            if parts.format not in _FORMATS:
                problem = f"tables of {format_.text} are not supported"
                remedy = f"Use one of: {', '.join(_FORMATS)}."
                raise self.sql.unsupported(format_.start, problem, remedy)
        elif cursor.accept("LIKE"):
            place = cursor.token.start
            like = self.views.table(cursor.name("the name of a table"))
            if like.catalog:
                raise self.sql.error(
                    place, "LIKE takes a table of the same catalog", "Write db.table."
                )
            parts.like = ".".join((quote(like.database), quote(like.table)))
        elif cursor.accept("PARTITIONED", "BY"):
            self._partition_keys()
        elif cursor.accept("COMMENT"):
            parts.comment = self.string()
        elif cursor.accept("TBLPROPERTIES") or cursor.accept("WITH") or cursor.accept("OPTIONS"):
            parts.options |= self.properties()
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
                self.parts.partition_keys.append(self.name())
            else:
                column = self._column(closing)
                self.parts.columns.append(column)
                self.parts.partition_keys.append(column.name)
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")")

    def _unsupported(self, token: Token) -> Exception:
        remedy = _INSTEAD.get(token.text.upper(), "Leave it out.")
        return self.sql.unsupported(token.start, f"{token.text} is not supported here", remedy)
