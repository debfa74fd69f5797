"""Checks that a file holds the columns that its schema records, whatever reads it.

Runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

# How Arrow may hold values that parquet and ORC store alike.
_ALIKE: Final = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def require_recorded(
    found: pa.Schema | pa.StructType, recorded: Iterable[pa.Field], parent: str = ""
) -> None:
    """Check that ``found``, the columns of a file, include ``recorded``, those of its schema.

    Names are compared exactly, and nullability is not. ``parent`` is the path of a struct whose
    fields are compared, for errors.

    Raises:
        pa.ArrowInvalid: a column or nested field is missing, or of another type; names it.
    """
    for field in recorded:
        path = f"{parent}{field.name}"
        index = found.get_field_index(field.name)
        if index < 0:
            raise pa.ArrowInvalid(f"it has no column {path}, which its schema has")
        _require_type(found.field(index).type, field.type, path)


def _require_type(found: pa.DataType, recorded: pa.DataType, path: str) -> None:
    found = plain_type(found)
    is_binary = pa.types.is_fixed_size_binary(found) and recorded.equals(pa.binary())
    if is_binary or found.equals(recorded):
        return
    # Writers choose the unit of timestamps.
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(recorded):
        return
    if pa.types.is_struct(found) and pa.types.is_struct(recorded):
        require_recorded(found, recorded, f"{path}.")
    elif pa.types.is_map(found) and pa.types.is_map(recorded):
        _require_type(found.key_type, recorded.key_type, f"{path}.key")
        _require_type(found.item_type, recorded.item_type, f"{path}.value")
    elif _is_list(found) and _is_list(recorded):
        _require_type(found.value_type, recorded.value_type, f"{path}.element")
    else:
        raise pa.ArrowInvalid(f"column {path} holds {found}, but its schema says {recorded}")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with the same values that is no dictionary, extension, view or large type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return _ALIKE.get(kind, kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
