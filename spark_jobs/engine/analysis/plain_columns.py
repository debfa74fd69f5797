"""References such as ``s.price``, which most values are: resolved without asking Spark.

Only if there is one way to read them; everything else, and every error, is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from spark_jobs.contract.sql_text import unquoted
from spark_jobs.engine.analysis.expressions import Side

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
