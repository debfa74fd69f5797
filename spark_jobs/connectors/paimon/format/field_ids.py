"""Field ids in Parquet files, numbered as by Paimon's Java writers.

Follows ``ParquetSchemaConverter`` and ``SpecialFields``: columns and struct fields have the ids of
the schema. An element, key or value has an id computed from its field's id and its nesting depth.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_BASE: Final = 2147483647 // 4
_DEPTH_LIMIT: Final = 1024


def with_field_id(field: pa.Field, field_id: int, paimon: Any, depth: int = 0) -> pa.Field:
    """``field`` and all its nested fields with their ids; ``paimon`` is its type in JSON form."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = zip(kind, paimon["fields"], strict=True)
        kind = pa.struct([with_field_id(c, each["id"], each["type"]) for c, each in children])
    elif pa.types.is_list(kind):
        kind = pa.list_(_contained(kind.value_field, field_id, paimon["element"], depth + 1))
    elif pa.types.is_map(kind):
        kind = pa.map_(
            _contained(kind.key_field, field_id, paimon["key"], depth + 1, sign=-1),
            _contained(kind.item_field, field_id, paimon["value"], depth + 1),
        )
    return _numbered(field.with_type(kind), field_id)


def _contained(field: pa.Field, field_id: int, paimon: Any, depth: int, sign: int = 1) -> pa.Field:
    """An element, key or value; nested ones use the outer field's id with a greater depth."""
    inner = with_field_id(field, field_id, paimon, depth)
    return _numbered(inner, _BASE + sign * (field_id * _DEPTH_LIMIT + depth))


def _numbered(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(field_id)})
