"""What stands around a statement for other engines: SET in front of it, OPTIONS behind its target.

Only what says which partitions an INSERT OVERWRITE replaces has a meaning here; the errors say what
to write in the place of everything else.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.text import Span, SqlText
from spark_jobs.contract.spark_settings import decides_meaning, instead_of

# ``static``: all partitions that the statement names, or the whole table.
OverwritePolicy = Literal["dynamic", "static"]

_SETTING: Final = "spark.sql.sources.partitionoverwritemode"
_OPTION: Final = "dynamic-partition-overwrite"
_POLICIES: Final[dict[str, OverwritePolicy]] = {"dynamic": "dynamic", "static": "static"}
_OPTION_POLICIES: Final[dict[str, OverwritePolicy]] = {"true": "dynamic", "false": "static"}
_PAIR: Final = re.compile(r"'([^']*)'\s*=\s*'([^']*)'\s*(?:,|$)")
_HINT: Final = re.compile(r"/\*\+\s*OPTIONS\s*\((.*)\)\s*\*/", re.IGNORECASE | re.DOTALL)


def read_settings(cursor: Cursor) -> OverwritePolicy | None:
    """Step over ``SET key = value;`` in front of a statement; the last policy of overwrites.

    Raises:
        RequestError: SYNTAX_ERROR for a SET without an end.
        NotSupportedError: another setting.
    """
    policy = None
    while cursor.accept("SET"):
        rest = Span(cursor.index, len(cursor.sql.tokens) - 1)
        end = next((i for i in range(rest.first, rest.last) if _ends(cursor.sql, i)), None)
        if end is None or end == rest.first:
            raise cursor.unexpected("SET key = value; in front of the statement")
        policy = _policy_of(cursor.sql, Span(rest.first, end))
        cursor.index = end + 1
    return policy


def _ends(sql: SqlText, index: int) -> bool:
    return sql.tokens[index].is_symbol(";")


def _policy_of(sql: SqlText, span: Span) -> OverwritePolicy:
    key, _, value = (part.strip().strip("'\"`") for part in sql.slice(span).partition("="))
    name = key.lower()
    # A value may be a secret: the place that errors show is behind it.
    place = sql.tokens[span.last].start
    if name != _SETTING:
        setting = key
        if name.split()[:2] == ["time", "zone"]:
            setting, key = "spark.sql.session.timeZone", "TIME ZONE"
        raise sql.unsupported(place, f"SET {key} is not read here", remedy_of(setting))
    return policy_of(sql, place, key, value)


def policy_of(sql: SqlText, place: int, key: str, value: str) -> OverwritePolicy:
    """What the value of the setting ``key`` means.

    Raises:
        RequestError: SYNTAX_ERROR: nothing.
    """
    policy = _POLICIES.get(value.lower())
    if policy is None:
        raise sql.error(place, f"{key} is neither DYNAMIC nor STATIC")
    return policy


def remedy_of(setting: str) -> str:
    """What to write in the place of a setting that is not read."""
    if not setting.lower().startswith("spark."):
        return "Leave it out: no setting of another engine has a meaning here."
    if decides_meaning(setting):
        return instead_of(setting)
    return f"Leave it out, or give it to the operator: conf={{'{setting}': ...}}."


def read_options(sql: SqlText, start: int, end: int) -> OverwritePolicy | None:
    """What ``/*+ OPTIONS(…) */`` between two positions says about overwrites.

    Raises:
        RequestError: SYNTAX_ERROR for what are no options.
        NotSupportedError: other options.
    """
    policy = None
    for place, text in sql.take_hints(start, end):
        for name, value in _options(sql, place, text):
            policy = _OPTION_POLICIES.get(value.lower()) if name == _OPTION else None
            if policy is None:
                problem = f"OPTIONS takes {_OPTION}, true or false, not {name}"
                remedy = "Leave it out. A source is read at its latest snapshot."
                raise sql.unsupported(place, problem, remedy)
    return policy


def _options(sql: SqlText, place: int, text: str) -> list[tuple[str, str]]:
    match = _HINT.fullmatch(text)
    content = match[1] if match else ""
    pairs = [(pair[1], pair[2]) for pair in _PAIR.finditer(content)]
    if not pairs or _PAIR.sub("", content).strip():
        raise sql.error(place, "expected OPTIONS('key' = 'value')")
    return pairs
