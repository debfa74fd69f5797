"""The queries of checks: one query over what checks can read, with the same rows whenever it runs.

Columns are looked up in the job, before any data is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.parser import read_names
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.row_checks import CHECKED_VIEWS
from spark_jobs.errors import ErrorCode

# Functions of Spark with other values in each call, or at each time.
_CALLS: Final = (
    *("RAND", "RANDOM", "RANDN", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("NOW", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP"),
    *("MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
)
# Those of them that are called without parentheses.
_WORDS: Final = ("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP")


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
    query, tables = read_names(text, (*CHECKED_VIEWS, *names))
    for table in tables:
        raise text.error(
            0,
            f"a check cannot read the table {table}",
            "It reads changes, new_rows, target and the statement's sources, by their names; make "
            "the table a source: table_source(...).",
            ErrorCode.REQUEST_INVALID,
        )
    _refuse_chance(text)
    return query


def _refuse_chance(text: SqlText) -> None:
    tokens = text.tokens
    for index, token in enumerate(tokens[:-1]):
        if _is_part(tokens, index):
            continue
        is_call = tokens[index + 1].is_symbol("(") and token.is_word(*_CALLS)
        if is_call or token.is_word(*_WORDS, "TABLESAMPLE"):
            raise text.error(
                token.start,
                f"{token.text} is not deterministic: rows that pass now may fail later",
                "Compare with a column or a constant; {{ ds }} and the like are rendered.",
                ErrorCode.EXPRESSION_NOT_ALLOWED,
            )


def _is_part(tokens: list[Token], index: int) -> bool:
    """Whether a token is a part of a dotted name, or a name in backticks."""
    around = (tokens[index - 1] if index else None, tokens[index + 1])
    return any(each is not None and each.is_symbol(".") for each in around)
