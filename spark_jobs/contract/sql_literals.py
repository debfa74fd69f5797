"""Values of data as the SQL literals that users would write: ``DATE '2026-01-31'``, ``NULL``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any


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
