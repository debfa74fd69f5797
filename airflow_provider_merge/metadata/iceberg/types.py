"""Iceberg's types as the names that SQL has for them."""

from __future__ import annotations

import re
from typing import Any, Final

from spark_jobs.formats.iceberg.foreign_types import type_name

_NAMES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP(6)",
    "timestamptz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ns": "TIMESTAMP(9)",
    "timestamptz_ns": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "string": "STRING",
    "binary": "BYTES",
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), *(\d+)\)")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


def sql_type(kind: Any, *, is_required: bool = False) -> str:
    """The name of one of pyiceberg's types, as in ``DECIMAL(10, 2) NOT NULL``."""
    return f"{_name(kind)} NOT NULL" if is_required else _name(kind)


def _name(kind: Any) -> str:
    if hasattr(kind, "element_type"):
        return f"ARRAY<{sql_type(kind.element_type, is_required=kind.element_required)}>"
    if hasattr(kind, "key_type"):
        value = sql_type(kind.value_type, is_required=kind.value_required)
        return f"MAP<{_name(kind.key_type)}, {value}>"
    if hasattr(kind, "fields"):
        parts = (
            f"`{each.name}` {sql_type(each.field_type, is_required=each.required)}"
            for each in kind.fields
        )
        return f"ROW<{', '.join(parts)}>"
    text = type_name(str(kind))
    if sizes := _DECIMAL.fullmatch(text):
        return f"DECIMAL({sizes[1]}, {sizes[2]})"
    if sizes := _FIXED.fullmatch(text):
        return f"BINARY({sizes[1]})"
    return _NAMES.get(text, text.upper())
