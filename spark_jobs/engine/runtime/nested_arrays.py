"""The parts of nested Arrow arrays. Imported by executors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def parts(values: pa.Array) -> Sequence[pa.Array]:
    """The children of nested values, without what is behind a NULL; none of others."""
    kind = values.type
    if pa.types.is_map(kind):
        maps = values.drop_null()
        first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
        return [each.slice(first, last - first) for each in (maps.keys, maps.items)]
    if pa.types.is_struct(kind):
        return list(values.flatten())
    return [values.flatten()] if pa.types.is_nested(kind) else []
