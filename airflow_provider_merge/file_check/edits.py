"""Edits after which a statement written for spark-sql runs here and does the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_merge.operators._shared.spark_conf import spark_conf
from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.lexer import LexicalError, tokenize
from airflow_provider_merge.sql.queries import QUERY_WORDS
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.secret_names import holds_secret, is_secret_name
from spark_jobs.errors import JobError

# They show or prepare something that no statement here needs.
_WITHOUT_EFFECT: Final = (
    *(("SHOW",), ("DESCRIBE",), ("DESC",), ("EXPLAIN",), ("REFRESH",), ("MSCK",), ("REPAIR",)),
    *(("CACHE",), ("UNCACHE",), ("CLEAR",), ("ANALYZE",)),
    *(("CREATE", "DATABASE"), ("CREATE", "SCHEMA"), ("CREATE", "NAMESPACE")),
    *(("SELECT",), ("VALUES",)),
)
# What makes of them more than that: CACHE TABLE ... AS makes a view, LOCATION places tables.
_WITH_EFFECT: Final = {
    "CACHE": ("AS", *QUERY_WORDS),
    "CREATE": ("LOCATION", "MANAGED", "WITH"),
}
# Settings of Hive's own engines, which Spark does not read.
_OF_HIVE: Final = ("hive.", "mapred.", "mapreduce.", "tez.")
_KEY: Final = re.compile(r"[\w.-]+")
_VARIABLE: Final = re.compile(r"\$\{(?:hivevar:|hiveconf:|env:)?([A-Za-z_]\w*)\}")
# Variables with the names of Airflow's own values.
_OF_AIRFLOW: Final = ("ds", "ds_nodash", "ts", "ts_nodash")


@dataclass(frozen=True, slots=True)
class Edit:
    """A statement's new text; ``conf`` and ``params``: what the task and its DAG get besides."""

    text: str
    conf: dict[str, str] = field(default_factory=dict)
    params: tuple[str, ...] = ()


def edit_of(piece: str) -> Edit | None:
    """What to write in place of a statement that does not run; None: nothing does the same.

    Whether the new text runs is for the caller to see.
    """
    params = tuple(dict.fromkeys(_VARIABLE.findall(piece)))
    text = _VARIABLE.sub(_template, piece)
    conf: dict[str, str] = {}
    try:
        tokenize(text)
    except LexicalError:
        return None
    sql = SqlText(text)
    setting = _setting(sql)
    if setting is not None:
        new_conf = _conf(*setting)
        if new_conf is None:
            return None
        conf = new_conf
    if setting is not None or _is_without_effect(sql):
        text = _commented(text)
    else:
        for change in _CHANGES:
            text = change(SqlText(text))
    own = tuple(each for each in params if each not in _OF_AIRFLOW)
    return None if text == piece else Edit(text, conf, own)


def _is_without_effect(sql: SqlText) -> bool:
    first, *others = sql.tokens
    more = _WITH_EFFECT.get(first.text.upper(), ())
    # CACHE TABLE has one of the words itself.
    if any(each.is_word(*more) for each in others[1:]):
        return False
    return any(Cursor(sql).at(*words) for words in _WITHOUT_EFFECT)


def _template(variable: re.Match[str]) -> str:
    name = variable[1]
    return f"{{{{ {name if name in _OF_AIRFLOW else f'params.{name}'} }}}}"


def _setting(sql: SqlText) -> tuple[str, str] | None:
    """Key and value of SET, if that is what the statement is."""
    cursor = Cursor(sql)
    if not cursor.accept("SET") or cursor.at("TIME", "ZONE"):
        return None
    key, equals, value = sql.text[cursor.token.start :].partition("=")
    return (key.strip().strip("`'\""), value.strip().strip("'\"")) if equals else None


def _conf(key: str, value: str) -> dict[str, str] | None:
    """The settings of the task in place of a SET; None: it would mean something else, or is secret.

    What settings of ``spark.sql`` are read, the parser decides.
    """
    if not _KEY.fullmatch(key) or key.lower().startswith("spark.sql."):
        return None
    if is_secret_name(key) or holds_secret(value):
        return None
    if key.lower().startswith(_OF_HIVE):
        return {}
    try:
        return spark_conf({key: value}) if key.startswith("spark.") else None
    except JobError:
        return None


def _commented(text: str) -> str:
    """The statement as a comment; its semicolon then ends nothing."""
    return f"/* {text.replace('/*', '').replace('*/', '')} */"


def _temporary_view(sql: SqlText) -> str:
    """A view that only the file itself reads."""
    cursor = Cursor(sql)
    if not cursor.accept("CREATE"):
        return sql.text
    cursor.accept("OR", "REPLACE")
    start = cursor.token.start
    return f"{sql.text[:start]}TEMPORARY {sql.text[start:]}" if cursor.at("VIEW") else sql.text


def _no_place(sql: SqlText) -> str:
    """CREATE TABLE without EXTERNAL and LOCATION: the catalog says where its tables lie."""
    if not sql.tokens[0].is_word("CREATE"):
        return sql.text
    gone = [
        (token.start, sql.tokens[at + 1].start)
        for at, token in enumerate(sql.tokens)
        if token.is_word("EXTERNAL") and at == 1
    ]
    gone += [
        (token.start, sql.tokens[at + 1].end)
        for at, token in enumerate(sql.tokens)
        if token.is_word("LOCATION") and sql.tokens[at + 1].kind == "string"
    ]
    return _without(sql.text, gone)


def _create_or_replace(sql: SqlText) -> str:
    start = sql.tokens[0].start
    replaces = Cursor(sql).at("REPLACE", "TABLE")
    return f"{sql.text[:start]}CREATE OR {sql.text[start:]}" if replaces else sql.text


def _without(text: str, gone: list[tuple[int, int]]) -> str:
    for start, end in sorted(gone, reverse=True):
        before = text[:start] if end < len(text) else text[:start].rstrip()
        text = before + text[end:].removeprefix(" ")
    return text


_CHANGES: Final[tuple[Callable[[SqlText], str], ...]] = (
    _temporary_view,
    _no_place,
    _create_or_replace,
)


def changed_lines(before: str, after: str) -> Iterator[str]:
    """The lines that go, each behind ``-``, and those that come, behind ``+``."""
    import difflib

    for line in difflib.ndiff(before.strip("\n").split("\n"), after.strip("\n").split("\n")):
        if line.startswith(("- ", "+ ")):
            yield line
