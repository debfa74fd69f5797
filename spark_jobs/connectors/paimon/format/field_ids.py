"""Field ids in parquet files, numbered as Paimon's Java writers number them.

After ``ParquetSchemaConverter`` and ``SpecialFields``: columns and struct fields have the schema's
ids; what an array or a map holds has an id made of its field's id and the depth of nesting.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_BASE: Final = 2147483647 // 4
_DEPTH_LIMIT: Final = 1024


def with_field_id(field: pa.Field, field_id: int, paimon: Any, depth: int = 0) -> pa.Field:
    """``field`` and all fields inside it with their ids; ``paimon`` is its type in JSON form."""
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
    """An element, key or value; deeper ones go on counting with the id of the outer field."""
    inner = with_field_id(field, field_id, paimon, depth)
    return _numbered(inner, _BASE + sign * (field_id * _DEPTH_LIMIT + depth))


def _numbered(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(field_id)})
