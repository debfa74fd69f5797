"""The queries of checks: one query over what checks can read, always with the same rows.

Columns are looked up in the job, before any data is read. Checks that can never hold, or never
fail, are refused as far as sqlglot understands their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.parser import read_names
from airflow_provider_merge.sql.text import SqlText
from airflow_provider_merge.sql.trees import scopes_of, tree_of
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.contract.request import TableName
from spark_jobs.contract.row_checks import (
    CHANGED_OPERATIONS,
    CHANGES,
    CHECKED_VIEWS,
    OPERATION,
    always_returns_a_row,
)
from spark_jobs.errors import ErrorCode, JobError

# Functions of Spark with other values in each call, or at each time.
_CALLS: Final = (
    *("RAND", "RANDOM", "RANDN", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("NOW", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP"),
    *("MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
    *("REFLECT", "TRY_REFLECT", "JAVA_METHOD", "CURRENT_USER", "SESSION_USER"),
    *("CURRENT_DATABASE", "CURRENT_SCHEMA", "CURRENT_CATALOG"),
)
# Those that tell the time only if nothing is given to them.
_EMPTY_CALLS: Final = ("UNIX_TIMESTAMP",)
# Those of them that are called without parentheses.
_WORDS: Final = ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP")
# What stands before a literal, or calls one, that may be one of Spark's names for a time.
_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_CASTS: Final = (*_TIMES, "CAST", "TRY_CAST", "TO_DATE", "TO_TIMESTAMP")
_NOW: Final = re.compile(r"""[rR]?['"]\s*(?:now|today|tomorrow|yesterday)\b""", re.IGNORECASE)
# The database of names that are written without one.
_NO_DATABASE: Final = "no database"


def checked_query(sql: str, source_names: Iterable[str] | None) -> str:
    """The query of a check as the job runs it.

    ``source_names`` are those of the statement's sources; None: they are not known yet.

    Raises:
        RequestError: the text is no query, or reads what it cannot, with line and column.
        AnalysisError: EXPRESSION_NOT_ALLOWED: its rows depend on chance or on the time.
        NotSupportedError: as ``parse_query`` does.
    """
    text = SqlText(sql)
    names = source_names
    if names is None:
        names = {token.name for token in text.tokens if token.is_name}
    known = (*CHECKED_VIEWS, *names)
    query, tables = read_names(text, known, _NO_DATABASE)
    for table in tables:
        raise _unknown(text, table, CHECKED_VIEWS if source_names is None else known)
    _refuse_chance(text)
    _require_meaning(query, text)
    return query


def _unknown(text: SqlText, table: TableName, known: Sequence[str]) -> JobError:
    """The error for a name that a check cannot read; ``known`` are those that it can."""
    is_named = table.database != _NO_DATABASE
    name = str(table) if is_named else table.table
    guess = did_you_mean(table.table, known)
    guess = f"{guess} " if guess else ""
    same = (each.start for each in text.tokens if each.is_name and each.name == table.table)
    return text.error(
        next(same, 0),
        f"a check cannot read {name}",
        f"{guess}It reads {', '.join(known)}. Make another table a source of the statement: "
        f"sources={{'{table.table}': table_source('{name if is_named else f'db.{name}'}')}}.",
        ErrorCode.REQUEST_INVALID,
    )


def _refuse_chance(text: SqlText) -> None:
    tokens = text.tokens
    for index, token in enumerate(tokens[:-1]):
        if _is_part(tokens, index):
            continue
        behind = tokens[index + 1]
        value = tokens[index + 2] if token.is_word(*_CASTS) and behind.is_symbol("(") else behind
        is_now = token.is_word(*_CASTS) and value.kind == "string" and _NOW.match(value.text)
        if is_now or _is_chance(tokens, index):
            written = text.text[token.start : value.end] if is_now else token.text
            raise text.error(
                token.start,
                f"{written} is not deterministic: rows that pass now may fail later",
                "Compare with a column or a constant; {{ ds }} and the like are rendered.",
                ErrorCode.EXPRESSION_NOT_ALLOWED,
            )


def _is_chance(tokens: list[Token], index: int) -> bool:
    """Whether a word, or a call, has other values in each call, or at each time."""
    token, behind = tokens[index], tokens[index + 1]
    if token.is_word(*_WORDS, "TABLESAMPLE"):
        return True
    if not behind.is_symbol("("):
        return False
    is_empty = tokens[index + 2].is_symbol(")")
    return token.is_word(*_CALLS) or (is_empty and token.is_word(*_EMPTY_CALLS))


def _is_part(tokens: list[Token], index: int) -> bool:
    """Whether a token is a part of a dotted name, or a name in backticks."""
    around = (tokens[index - 1] if index else None, tokens[index + 1])
    return any(each is not None and each.is_symbol(".") for each in around)


def _require_meaning(query: str, text: SqlText) -> None:
    """Check that the rows of a check's ``query`` depend on the rows that it reads.

    Raises:
        AnalysisError: EXPRESSION_INVALID: it always returns a row, or compares ``operation`` with
            what no row has.
    """
    from sqlglot import exp

    tree = tree_of(query)
    if tree is None:
        return
    if isinstance(tree, exp.Select) and _is_one_row(tree):
        raise always_returns_a_row("it")
    for value in _compared_operations(tree):
        if value not in CHANGED_OPERATIONS:
            known = ", ".join(CHANGED_OPERATIONS)
            raise text.error(
                0,
                f"{OPERATION} of {CHANGES} is never {value!r}",
                f"It is one of: {known}.",
                ErrorCode.EXPRESSION_INVALID,
            )


def _is_one_row(select: Any) -> bool:
    """Whether a SELECT computes one row of all: it has an aggregate, and no GROUP BY or HAVING."""
    from sqlglot import exp

    parts = ("group", "having", "qualify", "limit", "offset")
    if any(select.args.get(each) for each in parts):
        return False
    return any(
        isinstance(aggregate.find_ancestor(exp.Window, exp.Query), exp.Query)
        and aggregate.find_ancestor(exp.Query) is select
        for value in select.expressions
        for aggregate in value.find_all(exp.AggFunc)
    )


def _compared_operations(tree: Any) -> Iterator[str]:
    """The texts with which ``operation`` of ``changes`` is compared."""
    from sqlglot import exp

    for scope in scopes_of(tree):
        names = {alias.lower() for alias, each in scope.sources.items() if _is_changes(each)}
        is_alone = len(names) == len(scope.sources)
        for column in scope.columns:
            alias = column.table.lower()
            if column.name.lower() != OPERATION or len(column.parts) > 2:
                continue
            if alias in names or (not alias and is_alone):
                compared = column.find_ancestor(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.In)
                if compared is not None and _is_operand(column, compared):
                    yield from _texts(compared)


def _is_changes(source: Any) -> bool:
    """Whether what a query reads is ``changes``, perhaps through queries that keep its columns."""
    from sqlglot import exp

    if isinstance(source, exp.Table):
        return not source.db and source.name.lower() == CHANGES
    select = source.expression
    inner = list(source.sources.values())
    if not isinstance(select, exp.Select) or len(inner) != 1 or select.args.get("joins"):
        return False
    plain = {each.name.lower() for each in select.expressions if isinstance(each, exp.Column)}
    return (select.is_star or OPERATION in plain) and _is_changes(inner[0])


def _is_operand(column: Any, compared: Any) -> bool:
    sides = (compared.this, compared.args.get("expression"))
    return any(each is not None and each.unnest() is column for each in sides)


def _texts(compared: Any) -> Iterator[str]:
    from sqlglot import exp

    others = [*compared.args.get("expressions", ()), compared.args.get("expression"), compared.this]
    for each in others:
        value = None if each is None else each.unnest()
        if isinstance(value, exp.Literal) and value.is_string:
            yield str(value.this)
