"""References to columns: plain ones are resolved without asking Spark, others qualified."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from spark_jobs.contract.sql_text import unquoted
from spark_jobs.engine.analysis.expression_parser import ParsedExpression
from spark_jobs.engine.analysis.expressions import Side
from spark_jobs.engine.runtime.sql_text import find_name, qualify

_NAME: Final = r"(?:`(?:[^`]|``)+`|[A-Za-z_][A-Za-z0-9_]*)"
_REFERENCE: Final = re.compile(rf"\s*({_NAME})\.({_NAME})\s*")


class QualifiedColumn(NamedTuple):
    """A column of ``side``; ``alias`` is the text before the dot."""

    alias: str
    side: Side
    column: str


def qualified_column(text: str, visible: Iterable[Side]) -> QualifiedColumn | None:
    """The only column that ``text``, ``alias.column``, can mean; None if only Spark knows.

    ``visible`` are the sides that the expression sees. It is for the caller to check that the
    parser takes ``alias`` for a name.
    """
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        return None
    alias, name = (unquoted(part).lower() for part in reference.groups())
    sides = list(visible)
    # A column with the name of an alias could be a struct with a field of the column's name.
    if any(column.lower() == alias for side in sides for column in side.columns):
        return None
    columns = [
        QualifiedColumn(reference[1], side, column)
        for side in sides
        if side.alias.lower() == alias
        for column in side.columns
        if column.lower() == name
    ]
    return columns[0] if len(columns) == 1 else None


def without_added(parsed: ParsedExpression, target: Side, source: Side | None, sees: str) -> str:
    """The text in which no bare name means a column that the statement adds to the target."""
    if sees != "both" or source is None or not target.added:
        return parsed.text
    aliases = (target.alias.lower(), source.alias.lower())
    positions = [
        name.start
        for name in parsed.names
        if find_name(name.parts[0], target.added)
        and find_name(name.parts[0], source.columns)
        and not (len(name.parts) > 1 and name.parts[0].lower() in aliases)
    ]
    return qualify(parsed.text, positions, source.alias)


def qualified(
    text: str, parsed: ParsedExpression, target: Side, source: Side | None, sees: str
) -> str:
    """``text``, which sees the ``target`` or the ``source`` alone, for rows that have both."""
    if sees == "both" or source is None:
        return text
    visible, hidden = (target, source) if sees == "target" else (source, target)
    positions = [
        name.start
        for name in parsed.names
        if not (len(name.parts) > 1 and name.parts[0].lower() == visible.alias.lower())
        and find_name(name.parts[0], visible.columns)
        and _clashes(name.parts[0], hidden)
    ]
    return qualify(text, positions, visible.alias)


def _clashes(name: str, hidden: Side) -> bool:
    return name.lower() == hidden.alias.lower() or find_name(name, hidden.columns) is not None
