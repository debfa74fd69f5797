"""Values of column statistics and partitions as plain JSON, exact in both directions.

NULL, booleans, integers and strings stand for themselves; everything else is an object with one
key: ``float`` (hexadecimal), ``decimal``, ``date``, ``timestamp`` (without a zone), ``instant``
(UTC), ``time`` and ``binary`` (base64).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any


def encode_value(value: Any) -> Any:
    """``value`` as JSON data.

    Raises:
        TypeError: column statistics have no values of this type.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return {"instant": value.astimezone(UTC).replace(tzinfo=None).isoformat()}
    for kind, name, encode in _ENCODERS:
        if isinstance(value, kind):
            return {name: encode(value)}
    raise TypeError(f"{type(value).__name__} is not a type of a statistic")


def decode_value(document: Any) -> Any:
    """The value from JSON data that ``encode_value`` made."""
    if not isinstance(document, dict):
        return document
    ((kind, text),) = document.items()
    if kind == "instant":
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return _DECODERS[kind](text)


# datetime is a subclass of date, so it comes first.
_ENCODERS: tuple[tuple[type, str, Callable[[Any], str]], ...] = (
    (float, "float", float.hex),
    (Decimal, "decimal", str),
    (datetime, "timestamp", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (bytes, "binary", lambda value: base64.b64encode(value).decode()),
)

_DECODERS: dict[str, Callable[[str], Any]] = {
    "float": float.fromhex,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "binary": base64.b64decode,
}
