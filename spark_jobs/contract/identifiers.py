"""Names in Spark SQL, with and without backticks."""

from __future__ import annotations

import re
from typing import Final

# Names of columns that begin so, in any case, are the engine's own.
RESERVED_PREFIX: Final = "__merge_"
_PART: Final = re.compile(r"(?:`(?:[^`]|``)+`|[^.`])+")


def quote(name: str) -> str:
    """``name`` as a quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(part: str) -> str:
    """The name of an identifier that may be in backticks."""
    quoted = len(part) > 1 and part[0] == part[-1] == "`"
    return part[1:-1].replace("``", "`") if quoted else part


def name_parts(text: str) -> tuple[str, ...]:
    """The names in ``column.field``, each perhaps in backticks."""
    return tuple(unquoted(each.strip()) for each in _PART.findall(text))
