"""Qualifying and finding names in Spark SQL text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark_jobs.contract.identifiers import quote, unquoted


def column_of(alias: str, column: str) -> str:
    """``alias.column``, both quoted."""
    return f"{quote(alias)}.{quote(column)}"


def qualify(text: str, positions: Iterable[int], alias: str) -> str:
    """``text`` with ``alias.`` in front of the references that start at ``positions``."""
    for position in sorted(positions, reverse=True):
        text = f"{text[:position]}{quote(alias)}.{text[position:]}"
    return text


def find_name(name: str, names: Iterable[str]) -> str | None:
    """The first of ``names`` that equals ``name``, ignoring case; None if there is none."""
    lowered = name.lower()
    return next((each for each in names if each.lower() == lowered), None)


def split_name(text: str) -> list[str]:
    """The parts of a dotted name; backticks keep a dot inside a part."""
    parts = re.findall(r"(?:`(?:[^`]|``)*`|[^.`])+", text)
    return [unquoted(part.strip()) for part in parts]
