"""What is asked of the process that reads rows, and what it answers.

Types of columns are told as families whose values have one text each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# Of each partition and side.
MOST_ROWS: Final = 20
MOST_COLUMNS: Final = 30
MOST_CHARACTERS: Final = 200
# Stored bytes of all files, and rows of those of one partition that are read to their ends.
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_COMPARED_ROWS: Final = 50_000

Row = list[str | None]
_WORD: Final = re.compile(r"[A-Z_]+")
_FAMILIES: Final = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"), "integer"),
    "FLOAT": "float",
    "DOUBLE": "double",
    **dict.fromkeys(("DECIMAL", "NUMERIC"), "decimal"),
    "DATE": "date",
    "TIME": "time",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), "timestamp"),
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR"), "text"),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), "bytes"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A partition's files: the path or URI, and the number of rows, of each.

    A side that stands alone has one of its files, and ``counts`` has the rows of both sides. With
    two sides, the files are all there are.
    """

    removed: tuple[tuple[str, int], ...]
    added: tuple[tuple[str, int], ...]
    counts: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Question:
    """The columns, each with name, family and field id, and the parts to read.

    ``options`` open the files' store with fsspec; they hold secrets.
    """

    columns: tuple[tuple[str, str, int | None], ...]
    parts: tuple[Part, ...]
    options: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartRows:
    """Rows of one partition that only one side has, the first of so many; or why there are none."""

    removed: list[Row] = field(default_factory=list)
    added: list[Row] = field(default_factory=list)
    removed_count: int = 0
    added_count: int = 0
    problem: str = ""


def family_of(kind: str) -> str | None:
    """The family of a column's type; None: its values are not shown, as those of nested types."""
    word = _WORD.match(kind.upper())
    return None if word is None or "<" in kind else _FAMILIES.get(word[0])
