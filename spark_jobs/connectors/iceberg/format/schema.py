"""Columns and types of Iceberg tables, as Spark and Arrow types. Runs on executors.

Follows the Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from spark_jobs.contract.sql_text import quote
from spark_jobs.datafiles.parquet.annotations import ANNOTATION
from spark_jobs.formats.iceberg.foreign_types import type_name

# How pyarrow names the ids of a parquet file's fields.
FIELD_ID: Final = b"PARQUET:field_id"

_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_SPARK: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "string": "STRING",
    "binary": "BINARY",
}
_ARROW: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
# Types that Spark does not have; pyarrow does not annotate their values as Java does.
_CARRIED: Final = {"time": pa.time64("us"), "uuid": pa.binary(16)}
_FIXED: Final = re.compile(r"fixed\[(\d{1,9})\]")
_DEEPEST: Final = 100


class UnknownTypeError(ValueError):
    """A type that Spark does not have, or that new files cannot have; the message is the type."""


@dataclass(frozen=True, slots=True)
class IcebergType:
    """A type: ``name`` is that of a primitive one, or ``struct``, ``list`` or ``map``.

    ``fields`` are those of a struct, the element of a list, or key and value of a map.
    """

    name: str
    fields: tuple[IcebergField, ...] = ()

    @property
    def is_primitive(self) -> bool:
        """Whether it has no nested fields."""
        return self.name not in ("struct", "list", "map")


@dataclass(frozen=True, slots=True)
class IcebergField:
    """A column or nested field.

    ``default`` is the JSON value of rows that are older than it, ``write_default`` that of new rows
    which are given none.
    """

    id: int
    name: str
    type: IcebergType
    required: bool = False
    comment: str | None = None
    default: Any = None
    write_default: Any = None

    @property
    def is_stored(self) -> bool:
        """Whether files have the column: one of an unknown type is NULL, and is left out."""
        return self.type.name != "unknown"


def parse_fields(struct: Mapping[str, Any]) -> tuple[IcebergField, ...]:
    """The fields of a schema or struct, from its JSON form.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return _fields(struct, 0)


def _fields(struct: Mapping[str, Any], depth: int) -> tuple[IcebergField, ...]:
    if depth > _DEEPEST:
        raise ValueError("its types are nested too deeply")
    return tuple(
        IcebergField(
            id=int(field["id"]),
            name=str(field["name"]),
            type=_type(field["type"], depth),
            required=bool(field["required"]),
            comment=field.get("doc"),
            default=field.get("initial-default"),
            write_default=field.get("write-default"),
        )
        for field in struct["fields"]
    )


def _type(raw: Any, depth: int) -> IcebergType:
    if isinstance(raw, str):
        return IcebergType(type_name(raw))
    if raw["type"] == "struct":
        return IcebergType("struct", _fields(raw, depth + 1))
    if raw["type"] == "list":
        return IcebergType("list", (_part("element", raw, raw["element-required"], depth),))
    if raw["type"] != "map":
        return IcebergType(str(raw["type"]))
    key = _part("key", raw, True, depth)
    return IcebergType("map", (key, _part("value", raw, raw["value-required"], depth)))


def _part(name: str, raw: Mapping[str, Any], required: bool, depth: int) -> IcebergField:
    kinds = {"fields": [{"id": 0, "name": name, "type": raw[name], "required": required}]}
    (field,) = _fields(kinds, depth + 1)
    return IcebergField(int(raw[f"{name}-id"]), name, field.type, required)


def spark_type(kind: IcebergType) -> str:
    """The type in Spark's DDL.

    Raises:
        UnknownTypeError: Spark has no such type, or its values cannot be read here.
    """
    if kind.name == "struct":
        fields = (
            f"{quote(each.name)}: {spark_type(each.type)}{' NOT NULL' if each.required else ''}"
            for each in kind.fields
        )
        return f"STRUCT<{', '.join(fields)}>"
    if not kind.is_primitive:
        return f"{_NESTED[kind.name]}<{', '.join(spark_type(each.type) for each in kind.fields)}>"
    if kind.name in _SPARK:
        return _SPARK[kind.name]
    precision, scale = decimal_of(kind)
    return f"DECIMAL({precision},{scale})"


def opaque_type(kind: IcebergType) -> str | None:
    """The type, ``kind`` or one nested in it, that Spark does not have; None: it has all."""
    try:
        spark_type(kind)
    except UnknownTypeError as error:
        return str(error)
    return None


_NESTED: Final = {"list": "ARRAY", "map": "MAP"}


def decimal_of(kind: IcebergType) -> tuple[int, int]:
    """Precision and scale of a decimal type.

    Raises:
        UnknownTypeError: it is another type.
    """
    sizes = _DECIMAL.fullmatch(kind.name)
    if sizes is None or not 0 < int(sizes[1]) <= 38:
        raise UnknownTypeError(kind.name)
    return int(sizes[1]), int(sizes[2])


def arrow_type(kind: IcebergType) -> pa.DataType:
    """The type of its values in Arrow; nested fields have the table's names.

    Raises:
        UnknownTypeError: new files cannot hold its values as they are.
    """
    if kind.name == "struct":
        return pa.struct([arrow_field(each) for each in kind.fields])
    if kind.name == "list":
        return pa.list_(arrow_field(kind.fields[0]))
    if kind.name == "map":
        return pa.map_(*(arrow_field(each) for each in kind.fields))
    if found := _FIXED.fullmatch(kind.name):
        return pa.binary(int(found[1]))
    known = _ARROW.get(kind.name) or _CARRIED.get(kind.name)
    return known or pa.decimal128(*decimal_of(kind))


def arrow_field(field: IcebergField) -> pa.Field:
    """The field in Arrow, with its id, as parquet files store it; raises as ``arrow_type``."""
    metadata = {FIELD_ID: str(field.id).encode()}
    if field.type.name in _CARRIED:
        metadata[ANNOTATION] = field.type.name.encode()
    return pa.field(field.name, arrow_type(field.type), not field.required, metadata)


def all_fields(fields: Iterable[IcebergField]) -> Iterator[IcebergField]:
    """The fields and all that are nested in them."""
    for field in fields:
        yield field
        yield from all_fields(field.type.fields)
