"""Names and literals in Spark SQL text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

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


def sql_literal(value: Any) -> str:
    """A value as Spark SQL text, for messages; of nested values what Python shows."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return str(value)


def sql_conditions(values: Mapping[str, Any]) -> str:
    """Values by column: ``day = DATE '2026-01-31', hour = 7``."""
    return ", ".join(f"{name} = {sql_literal(value)}" for name, value in values.items())
