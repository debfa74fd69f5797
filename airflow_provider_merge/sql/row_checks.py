"""The queries of checks: one query over what checks can read, with the same rows whenever it runs.

Columns are looked up in the job, before any data is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from airflow_provider_merge.sql.check_meaning import require_meaning
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.parser import read_names
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.near_names import did_you_mean
from spark_jobs.contract.request import TableName
from spark_jobs.contract.row_checks import CHECKED_VIEWS
from spark_jobs.errors import ErrorCode, JobError

# Functions of Spark with other values in each call, or at each time.
_CALLS: Final = (
    *("RAND", "RANDOM", "RANDN", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("NOW", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP"),
    *("MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
)
# Those of them that are called without parentheses.
_WORDS: Final = ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP")
# What stands before a literal that may be one of Spark's names for a time.
_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
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
    require_meaning(query, text)
    return query


def _unknown(text: SqlText, table: TableName, known: Sequence[str]) -> JobError:
    """The error for a name that a check cannot read; ``known`` are those that it can."""
    is_named = table.database != _NO_DATABASE
    name = str(table) if is_named else table.table
    guess = did_you_mean(table.table, known)
    same = (each.start for each in text.tokens if each.is_name and each.name == table.table)
    return text.error(
        next(same, 0),
        f"a check cannot read {name}",
        f"{guess} It reads {', '.join(known)}. Make another table a source of the statement: "
        f"sources={{'{table.table}': table_source('{name if is_named else f'db.{name}'}')}}.",
        ErrorCode.REQUEST_INVALID,
    )


def _refuse_chance(text: SqlText) -> None:
    tokens = text.tokens
    for index, token in enumerate(tokens[:-1]):
        if _is_part(tokens, index):
            continue
        behind = tokens[index + 1]
        is_call = behind.is_symbol("(") and token.is_word(*_CALLS)
        is_now = token.is_word(*_TIMES) and behind.kind == "string" and _NOW.match(behind.text)
        if is_call or is_now or token.is_word(*_WORDS, "TABLESAMPLE"):
            written = f"{token.text} {behind.text}" if is_now else token.text
            raise text.error(
                token.start,
                f"{written} is not deterministic: rows that pass now may fail later",
                "Compare with a column or a constant; {{ ds }} and the like are rendered.",
                ErrorCode.EXPRESSION_NOT_ALLOWED,
            )


def _is_part(tokens: list[Token], index: int) -> bool:
    """Whether a token is a part of a dotted name, or a name in backticks."""
    around = (tokens[index - 1] if index else None, tokens[index + 1])
    return any(each is not None and each.is_symbol(".") for each in around)
