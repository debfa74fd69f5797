"""Which parquet files Spark's vectorised reader reads, by their footers; pyarrow reads the others.

The reader has no BYTE_STREAM_SPLIT, some codecs need libraries that Spark comes without, and it
converts some types otherwise than by value: it takes any bytes for text, for example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.row_groups import leaves_of
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


def is_for_spark(metadata: pq.FileMetaData, column: str, wanted: pa.DataType) -> bool:
    """Whether Spark reads a column of a file, which has it, as values of ``wanted``.

    Nested fields of ``wanted`` have the names that they have in the file.
    """
    schema = metadata.schema.to_arrow_schema()
    leaves = leaves_of(schema, column)
    found = schema.field(schema.get_field_index(column)).type
    kinds = list(_leaf_types(found))
    for leaf, kind in zip(leaves, kinds, strict=True):
        if _has_nanoseconds(kind) and metadata.schema.column(leaf).physical_type == "INT64":
            return False
    return _reads_as(found, wanted) and all(_has_readable_pages(metadata, leaf) for leaf in leaves)


def is_mapping_for_spark(metadata: pq.FileMetaData, mapping: FieldMapping) -> bool:
    """Whether Spark reads what ``mapping`` takes from a file, to convert it to the table's type."""
    if mapping.source is None:
        return True
    return is_for_spark(metadata, mapping.source.name, _wanted_type(mapping))


def _wanted_type(mapping: FieldMapping) -> pa.DataType:
    """The type of the table's field, with the names of the file."""
    kind, parts = mapping.field.type, [each for each in mapping.parts if each.source is not None]
    if not mapping.parts:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([(each.stored.name, _wanted_type(each)) for each in parts])
    types = [_wanted_type(each) for each in parts]
    return pa.map_(*types) if pa.types.is_map(kind) else pa.list_(*types)


def _has_readable_pages(metadata: pq.FileMetaData, leaf: int) -> bool:
    # A writer has one codec for a column, but may choose the encoding of each chunk.
    if not metadata.num_row_groups:
        return True
    if metadata.row_group(0).column(leaf).compression in _OTHER_CODECS:
        return False
    if metadata.schema.column(leaf).physical_type == _TEXT:
        return True
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return not any(_OTHER_ENCODING in group.column(leaf).encodings for group in groups)


def _reads_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads ``found`` as ``wanted``, which may stand for it, by value."""
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


def _has_nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")
