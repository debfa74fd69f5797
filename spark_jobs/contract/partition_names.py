"""The names of partitions in results, asset events and metadata: ``day=2026-01-31/hour=7``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

# Stands for NULL in a name; a string value with this text looks the same.
NULL: Final = "NULL"
NAN: Final = "NaN"


def partition_text(value: Any) -> str | None:
    """The text of a partition value: ``2026-01-31``, ``7``, ``true``; None for NULL.

    Times with a zone are in UTC, bytes are hexadecimal.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, float) and not math.isfinite(value):
        return NAN if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value)


def partition_name(values: Mapping[str, Any]) -> str:
    """The name of a partition, from its values by column; empty for a table without partitions."""
    texts = {column: partition_text(value) for column, value in values.items()}
    return "/".join(f"{column}={NULL if text is None else text}" for column, text in texts.items())


def partition_key(values: Mapping[str, Any]) -> str:
    """A text that is different for each partition of a table, from its values by column."""
    return json.dumps([partition_text(value) for value in values.values()], ensure_ascii=False)


def only_value(name: str) -> str | None:
    """The text in the name of a partition of one column; None for NULL."""
    text = name.partition("=")[2]
    return None if text == NULL else text
