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
# Whole numbers that parquet stores alike, and that fit the other type, but for some of 64 bits.
_NARROWER: Final = {
    pa.int16(): (pa.int8(), pa.uint8()),
    pa.int32(): (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()),
    pa.int64(): (pa.uint64(),),
}


class OtherColumnsError(Exception):
    """A file is whole, but does not hold its table's columns; the message goes after its name."""


def require_recorded(
    found: pa.Schema | pa.StructType, recorded: Iterable[pa.Field], parent: str = ""
) -> None:
    """Check that ``found``, the columns of a file, include ``recorded``, those of its schema.

    Names are compared exactly, and nullability is not. ``parent`` is the path of a struct whose
    fields are compared, for errors.

    Raises:
        OtherColumnsError: a column or nested field is missing, or of another type; names it.
    """
    for field in recorded:
        path = f"{parent}{field.name}"
        index = found.get_field_index(field.name)
        if index < 0:
            raise OtherColumnsError(f"has no column {path}, which its schema has")
        _require_type(found.field(index).type, field.type, path)


def _require_type(found: pa.DataType, recorded: pa.DataType, path: str) -> None:
    found = plain_type(found)
    if found.equals(recorded) or _may_stand_for(found, recorded):
        return
    if pa.types.is_struct(found) and pa.types.is_struct(recorded):
        require_recorded(found, recorded, f"{path}.")
    elif pa.types.is_map(found) and pa.types.is_map(recorded):
        _require_type(found.key_type, recorded.key_type, f"{path}.key")
        _require_type(found.item_type, recorded.item_type, f"{path}.value")
    elif is_list(found) and is_list(recorded):
        _require_type(found.value_type, recorded.value_type, f"{path}.element")
    else:
        raise OtherColumnsError(f"holds {found} in column {path}, but its schema says {recorded}")


def _may_stand_for(found: pa.DataType, recorded: pa.DataType) -> bool:
    """Whether readers in Java, too, take values of ``found`` for those of ``recorded``.

    Those that do not fit are an error when they are read.
    """
    # Writers choose the unit of timestamps.
    if pa.types.is_timestamp(found):
        return bool(pa.types.is_timestamp(recorded))
    if pa.types.is_decimal128(found) and pa.types.is_decimal128(recorded):
        return bool(found.scale == recorded.scale and found.precision <= recorded.precision)
    return holds_bytes_of(found, recorded) or is_narrower(found, recorded)


def is_narrower(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether whole numbers of ``found`` are stored as those of ``wanted``, which has them."""
    return found in _NARROWER.get(wanted, ())


def holds_bytes_of(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether ``found`` has bytes, of one length or without an annotation, for ``wanted``."""
    if wanted.equals(pa.binary()):
        return bool(pa.types.is_fixed_size_binary(found) or found.equals(pa.string()))
    return bool(wanted.equals(pa.string()) and found.equals(pa.binary()))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with the same values that is no dictionary, extension, view or large type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return _ALIKE.get(kind, kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any number of elements."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
