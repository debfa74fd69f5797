"""Converts arrays from Spark to exactly the type that a file or table has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.recorded_columns import OtherColumnsError
from spark_jobs.errors import DataError, ErrorCode

_FLOORED_UNITS = {"s": "second", "ms": "millisecond"}


def conform(array: pa.Array, field: pa.Field, path: str = "") -> pa.Array:
    """``array`` as an array of ``field.type``, nested names and nullability included.

    Values stay the same, except that a timestamp is floored to a coarser unit of ``field``, as the
    writers of table formats do. ``path`` is the column's name in errors.

    Raises:
        DataError: NOT_NULL_VIOLATION if a required value is NULL, VALUE_NOT_STORABLE if a value
            does not fit; both name the column.
    """
    if len(array) == 0:
        # Java sends no offsets of empty nested lists, and pyarrow's flatten would read garbage.
        return pa.nulls(0, field.type)
    path = path or field.name
    if not field.nullable and array.null_count:
        raise DataError(
            ErrorCode.NOT_NULL_VIOLATION,
            f"Column {path} must not be NULL, but {array.null_count} new values are.",
            "Filter or replace the NULLs in the source, for example with coalesce.",
        )
    kind = field.type
    if pa.types.is_struct(kind):
        return _conform_struct(array, kind, path)
    if pa.types.is_map(kind):
        return _conform_map(array, kind, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _conform_list(array, kind, path)
    return _conform_leaf(array, kind, path)


def read_as(array: pa.Array, field: pa.Field) -> pa.Array:
    """``array``, some values of a file, as ``conform`` converts new ones.

    Raises:
        OtherColumnsError: a value is not valid for the field's type; names the column.
        DataError: NOT_NULL_VIOLATION.
    """
    try:
        return conform(array, field)
    except DataError as error:
        if error.code is not ErrorCode.VALUE_NOT_STORABLE:
            raise
        raise OtherColumnsError(
            f"holds a value in column {field.name} that is not valid for {field.type}: "
            f"{error.__cause__}"
        ) from error


def _conform_leaf(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    if array.type.equals(kind):
        return array
    try:
        return _floored(array, kind).cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"Column {path} of type {kind} cannot hold a new value: {error}",
            "Cast or filter the value in the statement.",
        ) from error


def _floored(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_timestamp(array.type) and pa.types.is_timestamp(kind)):
        return array
    unit = _FLOORED_UNITS.get(kind.unit)
    if unit is None or array.type.unit == kind.unit:
        return array
    # In UTC, because flooring in a zone follows the zone's local clock.
    utc = array.cast(pa.timestamp(array.type.unit, "UTC")) if array.type.tz else array
    return pc.floor_temporal(utc, unit=unit)


def _conform_struct(array: pa.Array, kind: pa.StructType, path: str) -> pa.Array:
    missing = array.is_null()
    children = []
    for child in kind:
        values = array.field(child.name)
        child_path = f"{path}.{child.name}"
        if not child.nullable and values.null_count:
            # In a NULL struct, a NULL field is not a violation.
            conform(values.filter(array.is_valid()), child, child_path)
        found = conform(values, child.with_nullable(nullable=True), child_path)
        children.append(found if child.nullable else _without_nulls(found))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing)


def _without_nulls(array: pa.Array) -> pa.Array:
    """``array`` with any value in place of each NULL: what a NULL struct hides.

    pyarrow writes no required field that has NULLs, even if NULL structs hide all of them.
    """
    if not array.null_count:
        return array
    kind = array.type
    children = None
    if pa.types.is_struct(kind):
        children = [array.field(index) for index in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        pair = [array.keys, array.items]
        children = [pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = [array.values]
    own = [None, *array.buffers()[1 : kind.num_buffers]]
    return pa.Array.from_buffers(kind, len(array), own, 0, array.offset, children)


def _conform_list(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    values = conform(array.flatten(), kind.value_field, f"{path}.element")
    offsets = list_offsets(array)
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets, values, type=kind, mask=array.is_null())
    narrow = offsets.cast(pa.int32())
    return pa.ListArray.from_arrays(narrow, values, type=kind, mask=array.is_null())


def _conform_map(array: pa.Array, kind: pa.MapType, path: str) -> pa.Array:
    entry = pa.struct([array.type.key_field, array.type.item_field])
    lists = array.cast(pa.list_(pa.field("entries", entry, nullable=False)))
    entries = lists.flatten()
    keys = conform(entries.field(0), kind.key_field, f"{path}.key")
    items = conform(entries.field(1), kind.item_field, f"{path}.value")
    offsets = list_offsets(lists).cast(pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=array.is_null())


def list_offsets(lists: pa.Array) -> pa.Array:
    """Offsets into ``lists.flatten()``, which omits values hidden by NULL lists and slices."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
