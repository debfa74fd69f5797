"""The types in the footers of Parquet and ORC files, in the words of Spark SQL.

Columns and the parts of nested ones are known by paths in lower case, as Parquet and Iceberg write
them: ``address.city``, ``items.element.price``, ``prices.key``, ``prices.value``. Imported by
executors.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.landing.type_names import NAMES

# What Spark SQL has no words for.
NANOSECONDS: Final = " in nanoseconds"
INSTANT_OF_ORC: Final = "TIMESTAMP WITH LOCAL TIME ZONE"
FIXED_BINARY: Final = "BINARY of fixed length"
UNKNOWN: Final = "another type"

_PHYSICAL: Final = {
    "BOOLEAN": "BOOLEAN",
    "INT32": "INT",
    "INT64": "BIGINT",
    "INT96": "TIMESTAMP",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BYTE_ARRAY": "BINARY",
    "FIXED_LEN_BYTE_ARRAY": FIXED_BINARY,
}
_LOGICAL: Final = {
    "String": "STRING",
    "Enum": "STRING",
    "JSON": "STRING",
    "BSON": "BINARY",
    "Date": "DATE",
    "Null": "VOID",
}
_WHOLE: Final = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}

# What Spark notes of columns that ORC files store as another type.
_TYPE_OF_SPARK: Final = b"spark.sql.catalyst.type"
_NOT_ALIKE: Final = {"timestamp_ntz": "TIMESTAMP_NTZ"}

# The path and the type of each column, and of each of its parts.
Types = Iterator[tuple[str, str]]


def parquet_types(metadata: pq.FileMetaData) -> Types:
    """The types of a Parquet file; of a file whose nesting is not plain, ``UNKNOWN`` ones."""
    schema = metadata.schema
    columns = map(schema.column, range(metadata.num_columns))
    kinds = [_parquet_type(each.physical_type, each.logical_type.to_json()) for each in columns]
    leaves = iter(kinds)
    types = list(_types(schema.to_arrow_schema(), lambda _: next(leaves, "")))
    is_plain = next(leaves, None) is None and all(kind for _, kind in types)
    return ((path, kind if is_plain else UNKNOWN) for path, kind in types)


def orc_types(schema: pa.Schema) -> Types:
    """The types of an ORC file."""
    return _types(schema, _orc_type)


def _types(fields: Iterable[pa.Field], leaf: Callable[[pa.Field], str], above: str = "") -> Types:
    for field in fields:
        yield from _type(f"{above}{field.name.lower()}", field, leaf)


def _type(path: str, field: pa.Field, leaf: Callable[[pa.Field], str]) -> Types:
    kind = field.type
    if pa.types.is_map(kind):
        yield path, "MAP"
        yield from _type(f"{path}.key", kind.key_field, leaf)
        yield from _type(f"{path}.value", kind.item_field, leaf)
    elif pa.types.is_struct(kind):
        yield path, "STRUCT"
        yield from _types([kind.field(i) for i in range(kind.num_fields)], leaf, f"{path}.")
    elif pa.types.is_nested(kind) and kind.num_fields == 1:
        yield path, "ARRAY"
        yield from _type(f"{path}.element", kind.value_field, leaf)
    else:
        yield path, leaf(field)


@functools.cache
def _parquet_type(physical: str, logical_type: str) -> str:
    logical = json.loads(logical_type)
    kind = logical["Type"]
    if kind == "None":
        return _PHYSICAL.get(physical, UNKNOWN)
    if kind == "Int":
        return f"{'' if logical['isSigned'] else 'UNSIGNED '}{_WHOLE[logical['bitWidth']]}"
    if kind == "Decimal":
        return f"DECIMAL({logical['precision']},{logical['scale']})"
    if kind == "Timestamp":
        name = "TIMESTAMP" if logical["isAdjustedToUTC"] else "TIMESTAMP_NTZ"
        return name + (NANOSECONDS if logical["timeUnit"] == "nanoseconds" else "")
    return _LOGICAL.get(kind, UNKNOWN)


def _orc_type(field: pa.Field) -> str:
    kind, of_spark = field.type, (field.metadata or {}).get(_TYPE_OF_SPARK, b"").decode()
    if of_spark in _NOT_ALIKE:
        return _NOT_ALIKE[of_spark]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return INSTANT_OF_ORC if kind.tz else "TIMESTAMP"
    return NAMES.get(kind, UNKNOWN)
