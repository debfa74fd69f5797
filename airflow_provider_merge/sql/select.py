"""A text that is one query, for a task that reads only."""

from __future__ import annotations

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.queries import QUERY_WORDS, QueryText
from airflow_provider_merge.sql.text import Span, SqlText
from airflow_provider_merge.sql.views import Views

QUERY_SOURCE = "query"

_CHANGES = ("INSERT", "MERGE", "UPDATE", "DELETE")


def read_query(sql: SqlText, views: Views, first: int = 0) -> str:
    """The name of the view that the query in ``sql`` becomes; adds what it reads to ``views``.

    ``first``: the index of the query's first token.

    Raises:
        RequestError: SYNTAX_ERROR, the text is no query, or REQUEST_INVALID as ``Views.table``.
        NotSupportedError: as ``QueryText.query``.
    """
    cursor = Cursor(sql)
    cursor.index = first
    if not (cursor.token.is_word(*QUERY_WORDS) or cursor.at_symbol("(")):
        raise _no_query(sql, cursor.token)
    span = cursor.expression("a query")
    cursor.expect_end()
    _refuse_changes(sql, span)
    query = QueryText(views).query(span, views.scope)
    name = views.new_name(QUERY_SOURCE)
    views.add_query(name, query)
    return name


def _refuse_changes(sql: SqlText, span: Span) -> None:
    """Refuse statements that begin like a query, which Spark would run."""
    start = _start(sql, span)
    index = span.first
    while index < span.last:
        token, following = sql.tokens[index : index + 2]
        inserts = token.is_word("INSERT") and following.is_word("INTO", "OVERWRITE")
        if inserts or (index == start and token.is_word(*_CHANGES)):
            raise _no_query(sql, token)
        index = sql.closing.get(index, index) + 1


def _start(sql: SqlText, span: Span) -> int:
    """The index of the word behind WITH and its queries, if there are any."""
    index = span.first
    if not sql.tokens[index].is_word("WITH"):
        return index
    while index < span.last:
        token = sql.tokens[index]
        behind_query = sql.tokens[index - 1].is_symbol(")") and not token.is_word("AS")
        if behind_query and token.kind == "word":
            break
        index = sql.closing.get(index, index) + 1
    return index


def _no_query(sql: SqlText, token: Token) -> Exception:
    if token.kind == "end":
        return sql.error(token.start, "there is no query", "Write SELECT ... FROM ...")
    return sql.error(
        token.start,
        f"{token.text} is not a part of a query",
        "Accepted is SELECT, also behind WITH. Statements that change a table have operators of "
        "their own.",
    )
