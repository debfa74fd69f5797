"""The columns of Avro files as Spark's types. Imported by executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from spark_jobs.contract.identifiers import quote
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.avro.schemas import OTHER_TYPES, AvroSchema, Part

_TYPES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "enum": "STRING",
    "bytes": "BINARY",
    "fixed": "BINARY",
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "timestamp-nanos": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
    "local-timestamp-nanos": "TIMESTAMP_NTZ",
}
_MOST_DIGITS: Final = 38
_MOST_DEPTH: Final = 64


def unread_field(
    schema: AvroSchema, fields: Mapping[str, Part], wanted: Iterable[pa.Field]
) -> str | None:
    """The path of a field that the file has and ``wanted`` lacks, in any case; None if none."""
    kinds = {field.name.lower(): field.type for field in wanted}
    for name, part in fields.items():
        kind = kinds.get(name.lower())
        if kind is None:
            return name
        below = _unread_below(schema, part, kind)
        if below is not None:
            return f"{name}.{below}"
    return None


def _unread_below(schema: AvroSchema, part: Part, kind: pa.DataType) -> str | None:
    avro_type = schema.type_of(part)
    if avro_type.name == "record" and pa.types.is_struct(kind):
        return unread_field(schema, avro_type.fields, kind)
    if avro_type.item is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    name, item = (
        ("element", kind.value_type) if pa.types.is_list(kind) else ("value", kind.item_type)
    )
    below = _unread_below(schema, avro_type.item, item)
    return None if below is None else f"{name}.{below}"


def ddl_of(schema: AvroSchema, part: Part, depth: int = 0) -> str:
    """A type in Spark's DDL.

    Raises:
        NotSupportedError: Spark has no such type; the message names it.
    """
    if depth > _MOST_DEPTH:
        raise NotSupportedError("a record that contains itself", OTHER_TYPES)
    avro_type = schema.type_of(part)
    if avro_type.item is not None:
        item = ddl_of(schema, avro_type.item, depth + 1)
        return f"ARRAY<{item}>" if avro_type.name == "array" else f"MAP<STRING, {item}>"
    if avro_type.name == "record":
        fields = (
            f"{quote(name)}: {ddl_of(schema, each, depth + 1)}"
            for name, each in avro_type.fields.items()
        )
        return f"STRUCT<{', '.join(fields)}>"
    if avro_type.name == "decimal" and avro_type.precision <= _MOST_DIGITS:
        return f"DECIMAL({avro_type.precision},{avro_type.scale})"
    if avro_type.name not in _TYPES:
        raise NotSupportedError(avro_type.name, OTHER_TYPES)
    return _TYPES[avro_type.name]
