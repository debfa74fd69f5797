"""Which parquet files Spark's vectorised reader reads, by their footers; pyarrow reads the others.

The reader has no BYTE_STREAM_SPLIT, some codecs need libraries that Spark comes without, and it
converts some types otherwise than by value: it takes any bytes for text, for example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.recorded_columns import is_list, plain_type

_OTHER_CODECS: Final = ("BROTLI", "LZO")
_OTHER_ENCODING: Final = "BYTE_STREAM_SPLIT"
_TEXT: Final = "BYTE_ARRAY"
_WIDENED: Final = {
    pa.int16(): (pa.int8(),),
    pa.int32(): (pa.int8(), pa.int16()),
    pa.int64(): (pa.int8(), pa.int16(), pa.int32()),
    pa.float64(): (pa.float32(),),
}


def columns_not_for_spark(
    metadata: pq.FileMetaData, wanted: Mapping[str, pa.DataType]
) -> frozenset[str]:
    """The columns, by name, that Spark does not read as values of the ``wanted`` types.

    The file has all of them, and nested fields have the names that they have there.
    """
    not_for_spark = set()
    start = 0
    schema = metadata.schema.to_arrow_schema()
    spellings = Counter(name.lower() for name in schema.names)
    for field in schema:
        kinds = list(_leaf_types(field.type))
        leaves = range(start, start + len(kinds))
        start = leaves.stop
        if field.name not in wanted:
            continue
        # Spark does not tell names apart that differ only in case.
        is_read = spellings[field.name.lower()] == 1 and _reads_as(field.type, wanted[field.name])
        if not (is_read and _has_readable_leaves(metadata, leaves, kinds)):
            not_for_spark.add(field.name)
    return frozenset(not_for_spark)


def is_for_spark(metadata: pq.FileMetaData, mappings: Iterable[FieldMapping]) -> bool:
    """Whether Spark reads what ``mappings`` take from a file, for Spark to convert it."""
    wanted = {each.stored.name: _wanted_type(each) for each in mappings if each.source is not None}
    return not columns_not_for_spark(metadata, wanted)


def _wanted_type(mapping: FieldMapping) -> pa.DataType:
    """The type of the table's field, with the names of the file."""
    kind, parts = mapping.field.type, [each for each in mapping.parts if each.source is not None]
    if not mapping.parts:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([(each.stored.name, _wanted_type(each)) for each in parts])
    types = [_wanted_type(each) for each in parts]
    return pa.map_(*types) if pa.types.is_map(kind) else pa.list_(*types)


def _has_readable_leaves(
    metadata: pq.FileMetaData, leaves: range, kinds: Sequence[pa.DataType]
) -> bool:
    stored_as = [metadata.schema.column(leaf).physical_type for leaf in leaves]
    # Nanoseconds of INT96 are another matter.
    if any(map(_is_in_nanoseconds, kinds, stored_as)):
        return False
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    # A writer has one codec for a column, but may choose the encoding of each chunk.
    if any(
        each.column(leaf).compression in _OTHER_CODECS for each in groups[:1] for leaf in leaves
    ):
        return False
    numbers = [leaf for leaf, kind in zip(leaves, stored_as, strict=True) if kind != _TEXT]
    return not any(
        _OTHER_ENCODING in group.column(leaf).encodings for group in groups for leaf in numbers
    )


def _is_in_nanoseconds(kind: pa.DataType, stored_as: str) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns" and stored_as == "INT64")


def _reads_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads ``found`` as ``wanted``, which it may stand for, by value."""
    found = plain_type(found)
    if pa.types.is_struct(found):
        return all(_reads_as(found.field(each.name).type, each.type) for each in wanted)
    if pa.types.is_map(found):
        keys, items = (found.key_type, wanted.key_type), (found.item_type, wanted.item_type)
        return _reads_as(*keys) and _reads_as(*items)
    if is_list(found):
        return _reads_as(found.value_type, wanted.value_type)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        # Spark would convert between those with and without a zone by the zone of the session.
        return found.unit == "ns" or (found.tz is None) == (wanted.tz is None)
    if pa.types.is_decimal(found):
        return True
    return bool(found.equals(wanted)) or found in _WIDENED.get(wanted, ())


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the leaves, in the order of the file."""
    if not kind.num_fields or pa.types.is_dictionary(kind):
        yield kind
        return
    for number in range(kind.num_fields):
        yield from _leaf_types(kind.field(number).type)
