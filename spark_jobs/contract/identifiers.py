"""Names in Spark SQL, with and without backticks."""

from __future__ import annotations

from typing import Final

# Names of columns that begin so, in any case, are the engine's own.
RESERVED_PREFIX: Final = "__merge_"


def quote(name: str) -> str:
    """``name`` as a quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(part: str) -> str:
    """The name of an identifier that may be in backticks."""
    quoted = len(part) > 1 and part[0] == part[-1] == "`"
    return part[1:-1].replace("``", "`") if quoted else part
