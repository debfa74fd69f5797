"""VERSION AS OF and TIMESTAMP AS OF behind the name of a table, as in Spark's grammar."""

from __future__ import annotations

import re
from typing import Final

from airflow_provider_merge.sql.later import RENDERED_LATER
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import ErrorCode, RequestError

_VERSIONS: Final = ("VERSION", "SYSTEM_VERSION")
_TIMES: Final = ("TIMESTAMP", "SYSTEM_TIME")
_TYPES: Final = ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE")
_LITERAL: Final = re.compile(r"""'([^'\\]*)' | "([^"\\]*)" """, re.VERBOSE)
_WHOLE: Final = re.compile(r"[0-9]{1,19}")
# Beside a template: a state with which the text can be checked.
_FITTING: Final = {"version": "1", "as_of": "2000-01-01"}
# What a table's name in FROM can be followed by.
_ENDS: Final = ("(", ")", ",", ";", "|>")


def names_former_state(sql: SqlText, index: int) -> bool:
    """Whether the token ``index``, behind a table's name, begins a version or a time."""
    tokens = sql.tokens
    first = index + 1 if tokens[index].is_word("FOR") else index
    following = tokens[first : first + 3]
    return (
        len(following) == 3
        and following[0].is_word(*_VERSIONS, *_TIMES)
        and following[1].is_word("AS")
        and following[2].is_word("OF")
    )


def read_former_state(sql: SqlText, index: int) -> tuple[TableVersion | None, int]:
    """What the text says from the token ``index`` on, and the index behind; None: nothing.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
        NotSupportedError: a time that is no literal.
    """
    if not names_former_state(sql, index):
        return None, index
    tokens = sql.tokens
    index += tokens[index].is_word("FOR")
    is_time, index = tokens[index].is_word(*_TIMES), index + 3
    token = tokens[index]
    if is_time and token.is_word(*_TYPES) and tokens[index + 1].kind == "string":
        index, token = index + 1, tokens[index + 1]
    field = "as_of" if is_time else "version"
    text = _text(token, is_time=is_time)
    behind = tokens[index + 1]
    if text is None or (behind.kind == "symbol" and not behind.is_symbol(*_ENDS)):
        raise _no_literal(sql, token, is_time=is_time)
    if RENDERED_LATER in text:
        text = _FITTING[field]
    try:
        found = TableVersion(as_of=text) if is_time else TableVersion(version=text)
        return found, index + 1
    except RequestError as error:
        raise sql.error(
            token.start, error.problem, error.remedy, ErrorCode.REQUEST_INVALID
        ) from None


def _text(token: Token, *, is_time: bool) -> str | None:
    """What a literal says; None: it is none."""
    if token.kind == "string":
        found = _LITERAL.fullmatch(token.text)
        return None if found is None else found[1] if found[1] is not None else found[2]
    is_later = token.kind == "word" and RENDERED_LATER in token.text
    if is_later or (not is_time and _WHOLE.fullmatch(token.text)):
        return token.text
    return None


def _no_literal(sql: SqlText, token: Token, *, is_time: bool) -> Exception:
    if is_time:
        return sql.unsupported(
            token.start,
            "TIMESTAMP AS OF takes no expression here",
            "Write a time as text, such as '{{ data_interval_end }}'.",
        )
    return sql.error(
        token.start,
        "expected the id of a snapshot, or a name in quotes, behind VERSION AS OF",
        "Write VERSION AS OF 5, or VERSION AS OF 'tag'.",
    )
