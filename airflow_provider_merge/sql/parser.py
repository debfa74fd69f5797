"""SQL text to the contract: ``parse_statement``.

The frame of the statement is read here, on tokens with positions; expressions are slices of the
text and reach Spark as they were written. Only names of tables are replaced, each by the name of a
Spark temporary view that the job makes of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from airflow_provider_merge.sql.grammar import StatementReader
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.select import read_query
from airflow_provider_merge.sql.settings import OverwritePolicy
from airflow_provider_merge.sql.text import SqlText
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.request import Source, SqlSource, TableName, TableSource
from spark_jobs.contract.statements import RowStatement
from spark_jobs.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement of the contract.

    ``sources`` follow those that were given, in the request: a query among them may read them.
    ``overwrites``: what the text says about it in a setting or a hint. ``read``: those of the given
    source names that it reads; ``bare``: its tables that have no database in the text, lower case.
    """

    target: TableName
    statement: RowStatement | PartitionStatement
    sources: tuple[Source, ...]
    overwrites: OverwritePolicy | None = None
    read: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()


def parse_statement(
    sql: str, source_names: Iterable[str] = (), database: str | None = None
) -> ParsedStatement:
    """The statement in ``sql``: one MERGE INTO, UPDATE, DELETE FROM, INSERT, TRUNCATE or DROP.

    ``source_names`` are the names of sources that the text may use like tables; ``database`` is
    that of tables which are named without one.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
        AnalysisError: EXPRESSION_NOT_ALLOWED for a subquery where none can stand.
        NotSupportedError: recursive common table expressions, former states by an expression.
    """
    return _parsed_statement(sql, tuple(source_names), database)


# A list asks for the kind of a statement, then its operator for all of it.
@lru_cache(maxsize=1)
def _parsed_statement(
    sql: str, source_names: tuple[str, ...], database: str | None
) -> ParsedStatement:
    text = SqlText(sql)
    views = Views(text, source_names, database)
    reader = StatementReader(text, views)
    target, statement = reader.read()
    _refuse_table_qualifiers(text, views)
    text.refuse_hints()
    return ParsedStatement(
        target,
        statement,
        tuple(views.sources),
        reader.overwrites,
        frozenset(views.read),
        frozenset(views.bare),
    )


def parse_query(
    sql: str, source_names: Iterable[str] = (), database: str | None = None
) -> tuple[str, tuple[Source, ...]]:
    """The one query in ``sql``: the sources that it needs and is, and the name of the last one.

    Raises:
        RequestError, NotSupportedError: as ``parse_statement`` does.
    """
    views = _read_query(SqlText(sql), source_names, database, "")
    return views.sources[-1].name, tuple(views.sources)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query over ``tables``, by the names that it reads them as, and over sources in ``read``."""

    query: str
    tables: Mapping[str, TableSource]
    read: frozenset[str]


def parse_view(
    text: SqlText, first: int, source_names: Iterable[str], database: str | None, prefix: str
) -> ParsedQuery:
    """The query of a view, from the token ``first`` of a text to its end.

    ``prefix`` begins the names of tables that it reads; raises as ``parse_query`` does.
    """
    views = _read_query(text, source_names, database, prefix, first)
    *tables, query = views.sources
    named = {each.name: each for each in tables if isinstance(each, TableSource)}
    return ParsedQuery(cast("SqlSource", query).query, named, frozenset(views.read))


def read_names(
    text: SqlText, source_names: Iterable[str], database: str
) -> tuple[str, list[TableName]]:
    """The one query of a text, and the tables that it reads beside the sources of these names.

    ``database`` is that of tables which are named without one.

    Raises:
        RequestError, NotSupportedError: as ``parse_statement`` does.
    """
    *tables, query = _read_query(text, source_names, database, "").sources
    named = [each.table for each in tables if isinstance(each, TableSource)]
    return cast("SqlSource", query).query, named


def _read_query(
    text: SqlText,
    source_names: Iterable[str],
    database: str | None,
    prefix: str,
    first: int = 0,
) -> Views:
    views = Views(text, source_names, database, prefix)
    read_query(text, views, first)
    _refuse_table_qualifiers(text, views)
    text.refuse_hints()
    return views


def parse_where(
    condition: str,
    source_names: Iterable[str] = (),
    database: str | None = None,
    target: TableName | None = None,
) -> tuple[str, tuple[Source, ...]]:
    """A condition as the WHERE of DELETE and UPDATE takes it, and the sources of its subqueries.

    ``target`` is the table of the statement, if it is known.

    Raises:
        RequestError, NotSupportedError: as ``parse_statement`` does.
    """
    return _parse_expression("condition", condition, source_names, database, target)


def parse_value(
    value: str,
    source_names: Iterable[str] = (),
    database: str | None = None,
    target: TableName | None = None,
) -> tuple[str, tuple[Source, ...]]:
    """A value of UPDATE, and the sources of its subqueries; otherwise as ``parse_where``."""
    return _parse_expression("value", value, source_names, database, target)


def _parse_expression(
    what: str,
    expression: str,
    source_names: Iterable[str],
    database: str | None,
    target: TableName | None,
) -> tuple[str, tuple[Source, ...]]:
    text = SqlText(expression)
    views = Views(text, source_names, database)
    if target is not None:
        views.tables.add((target.database.lower(), target.table.lower()))
    read = StatementReader(text, views).read_expression(what)
    _refuse_table_qualifiers(text, views)
    text.refuse_hints()
    return read, tuple(views.sources)


def _refuse_table_qualifiers(text: SqlText, views: Views) -> None:
    """In expressions a table is known by its alias or last name only: no ``db.table.column``."""
    tokens = text.tokens
    for index in range(len(tokens) - 4):
        parts = tokens[index : index + 5]
        dotted = parts[1].is_symbol(".") and parts[3].is_symbol(".")
        first = index - 2 if _is_catalog(tokens[index - 2 : index], views.catalog) else index
        named = parts[0].is_name and parts[2].is_name and not tokens[first - 1].is_symbol(".")
        if not (dotted and named and (parts[4].is_name or parts[4].is_symbol("*"))):
            continue
        table = (parts[0].name.lower(), parts[2].name.lower())
        if table in views.tables and table[0] not in views.aliases:
            qualifier = "".join(token.text for token in tokens[first : index + 3])
            raise text.error(
                tokens[first].start,
                f"{qualifier}.{parts[4].text} names the table with its database",
                f"Give {qualifier} an alias, and write alias.{parts[4].text}.",
                ErrorCode.REQUEST_INVALID,
            )


def _is_catalog(tokens: Sequence[Token], catalog: str) -> bool:
    """Whether this is the name of the text's catalog, and a dot."""
    return bool(catalog and len(tokens) == 2) and (
        tokens[0].name == catalog and tokens[1].is_symbol(".")
    )
