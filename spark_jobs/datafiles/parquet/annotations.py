"""Logical types that pyarrow does not write as Java does: UUID, and TIME that is not of UTC.

A field of an Arrow schema names its one in the metadata ``ANNOTATION``; the elements of a footer
that have the field's id get it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import ElementField, number
from spark_jobs.datafiles.parquet.thrift import Struct, Value

ANNOTATION: Final = b"parquet_annotation"

_FIELD_ID: Final = b"PARQUET:field_id"
_EMPTY: Final = thrift.struct({})
_MICROSECONDS: Final = thrift.struct({2: _EMPTY})
_NOT_OF_UTC: Final = Value(thrift.FALSE, None)
_TIME_MICROS: Final = thrift.i32(8)
# As fields of SchemaElement; the numbers are those of ``LogicalType`` in ``parquet.thrift``.
_ANNOTATIONS: Final[dict[bytes, Struct]] = {
    b"uuid": {ElementField.LOGICAL_TYPE: thrift.struct({14: _EMPTY})},
    b"time": {
        ElementField.CONVERTED_TYPE: _TIME_MICROS,
        ElementField.LOGICAL_TYPE: thrift.struct(
            {7: thrift.struct({1: _NOT_OF_UTC, 2: _MICROSECONDS})}
        ),
    },
}


def is_annotated(schema: pa.Schema) -> bool:
    """Whether files of a schema have annotations."""
    return any(True for _ in _annotations(schema))


def annotated(elements: Iterable[Struct], fields: Iterable[pa.Field]) -> list[Struct]:
    """``elements`` of a schema with the annotations of ``fields`` and of those nested in them."""
    names = dict(_annotations(fields))
    found = [(each, names.get(number(each, ElementField.FIELD_ID, -1))) for each in elements]
    return [each if name is None else {**each, **_ANNOTATIONS[name]} for each, name in found]


def _annotations(fields: Iterable[pa.Field]) -> Iterator[tuple[int, bytes]]:
    """The names of annotations by field id."""
    for field in fields:
        metadata = field.metadata or {}
        if ANNOTATION in metadata:
            yield int(metadata[_FIELD_ID]), metadata[ANNOTATION]
        kind = field.type
        if pa.types.is_map(kind):
            yield from _annotations((kind.key_field, kind.item_field))
        elif pa.types.is_nested(kind):
            yield from _annotations(kind.field(number) for number in range(kind.num_fields))
