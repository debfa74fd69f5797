"""Which columns of a file that is rewritten are converted, because its table has another type.

Writers choose types, as long as readers of the table take the values: the unit of timestamps, bytes
of one length, numbers of fewer digits, required values. New values need not fit those, so a column
that gets some is stored as the table's type, in all row groups. Others stay as they are if their
bounds mean the same in the table's type. Runs on executors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.recorded_columns import plain_type


def as_the_table(
    stored: Iterable[pa.Field],
    mappings: Sequence[FieldMapping] | None,
    columns: Iterable[pa.Field],
    assigned: Collection[str],
) -> Sequence[FieldMapping] | None:
    """``mappings``, by which columns that the file has as other types are converted.

    ``stored`` are the file's columns as they are. ``columns`` are the table's; they are needed if
    ``mappings`` is None, which is also returned if there is nothing to convert. ``assigned``: the
    columns that get new values.
    """
    held = {field.name: field for field in stored}
    if mappings is not None:
        return [_of_file(each, held, each.field.name in assigned) for each in mappings]
    wanted = {field.name: field for field in columns if field.name in held}
    converted = {
        name: field
        for name, field in wanted.items()
        if not _holds(held[name], field, strictly=name in assigned)
    }
    if not converted:
        return None
    return [FieldMapping(converted.get(name, field), field) for name, field in held.items()]


def _of_file(mapping: FieldMapping, held: dict[str, pa.Field], is_assigned: bool) -> FieldMapping:
    """The mapping from what the file holds, if that is not what its schema says."""
    if mapping.source is None or not mapping.is_copy:
        return mapping
    held_field = held.get(mapping.source.name)
    if held_field is None or _holds(held_field, mapping.field, strictly=is_assigned):
        return mapping
    return replace(mapping, source=held_field.with_metadata(mapping.source.metadata))


def _holds(found: pa.Field, wanted: pa.Field, *, strictly: bool) -> bool:
    """Whether ``found`` can hold all values of ``wanted``.

    Loosely: whether those that it has are stored alike, though timestamps may have another unit,
    and none may be NULL.
    """
    if strictly and wanted.nullable and not found.nullable:
        return False
    has, wants = plain_type(found.type), plain_type(wanted.type)
    if pa.types.is_timestamp(has) and pa.types.is_timestamp(wants) and not strictly:
        return (has.tz is None) == (wants.tz is None)
    if not pa.types.is_nested(wants):
        return bool(has.equals(wants))
    if has.num_fields != wants.num_fields or not pa.types.is_nested(has):
        return False
    if pa.types.is_map(has) and pa.types.is_map(wants):
        pairs = [(has.key_field, wants.key_field), (has.item_field, wants.item_field)]
        return all(_holds(own, field, strictly=strictly) for own, field in pairs)
    is_struct = pa.types.is_struct(wants)
    own_fields = {field.name: field for field in map(has.field, range(has.num_fields))}
    for index in range(wants.num_fields):
        field = wants.field(index)
        own = own_fields.get(field.name) if is_struct else has.field(index)
        if own is None or not _holds(own, field, strictly=strictly):
            return False
    return True
