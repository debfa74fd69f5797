"""Qualifies names in expressions that are evaluated where both sides of a MERGE have columns."""

from __future__ import annotations

from spark_jobs.engine.analysis.expression_parser import ParsedExpression
from spark_jobs.engine.analysis.expressions import Side
from spark_jobs.engine.runtime.sql_text import find_name, qualify


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
