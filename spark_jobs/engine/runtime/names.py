"""Quoting and qualifying names in Spark SQL text."""

from __future__ import annotations

from collections.abc import Iterable


def quote(name: str) -> str:
    """``name`` as a quoted Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(part: str) -> str:
    """The name behind an identifier, with or without backticks."""
    quoted = len(part) > 1 and part[0] == part[-1] == "`"
    return part[1:-1].replace("``", "`") if quoted else part


def column_of(alias: str, column: str) -> str:
    """``alias.column``, both quoted."""
    return f"{quote(alias)}.{quote(column)}"


def qualify(text: str, positions: Iterable[int], alias: str) -> str:
    """``text`` with ``alias.`` in front of the references that start at ``positions``."""
    for position in sorted(positions, reverse=True):
        text = f"{text[:position]}{quote(alias)}.{text[position:]}"
    return text


def find_name(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that equals ``name`` in any case; None when there is none."""
    lowered = name.lower()
    return next((each for each in names if each.lower() == lowered), None)
