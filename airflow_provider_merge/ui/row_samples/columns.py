"""The types of columns that samples show, as families whose values have one text each."""

from __future__ import annotations

import re
from typing import Final

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


def family_of(kind: str) -> str | None:
    """The family of a column's type; None: its values are not shown, as those of nested types."""
    word = _WORD.match(kind.upper())
    return None if word is None or "<" in kind else _FAMILIES.get(word[0])
