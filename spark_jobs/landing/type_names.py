"""Arrow types in Spark's DDL. Imported by executors."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

NAMES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
}


def type_name(kind: pa.DataType) -> str:
    """The name in Spark's DDL of an Arrow type that a Spark column has."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{each.name}: {type_name(each.type)}' for each in kind)}>"
    return NAMES.get(kind, str(kind))
