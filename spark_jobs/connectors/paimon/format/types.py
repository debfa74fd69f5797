"""Paimon's types (JSON, as in schema files): as Spark's, and with field ids in Parquet.

It is the mapping of Paimon's own Spark connector (``SparkTypeUtils``): Spark's TIMESTAMP is
Paimon's TIMESTAMP WITH LOCAL TIME ZONE, and TIMESTAMP_NTZ is TIMESTAMP. docs/types.md has the
whole table.

Follows ``ParquetSchemaConverter`` and ``SpecialFields``: columns and struct fields have the ids of
the schema. An element, key or value has an id computed from its field's id and its nesting depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from spark_jobs.contract.spark_types import SparkField, SparkType, parse_type
from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import NotSupportedError

_MAX_LENGTH: Final = 2147483647
_TEXT: Final = re.compile(r"([A-Z_]+)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?( WITH LOCAL TIME ZONE)?")

_OTHER_TYPE: Final = "Change the column's type, or keep it in another table."
_SAME_NAMES: Final = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "STRING": "string",
    "BYTES": "binary",
    "BINARY": "binary",
    "VARBINARY": "binary",
}

_FROM_SPARK: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "byte": "TINYINT",
    "smallint": "SMALLINT",
    "short": "SMALLINT",
    "int": "INT",
    "integer": "INT",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "float": "FLOAT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "string": "STRING",
    "binary": "BYTES",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ltz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ntz": "TIMESTAMP(6)",
}
_BASE: Final = 2147483647 // 4
_DEPTH_LIMIT: Final = 1024


def is_nullable(paimon: Any) -> bool:
    """Whether a Paimon type (JSON) is nullable."""
    text = paimon if isinstance(paimon, str) else paimon["type"]
    return not text.upper().rstrip().endswith("NOT NULL")


def _without_not_null(text: str) -> str:
    before = text.removesuffix("NOT NULL")
    return before.rstrip() if before != text and before[-1:].isspace() else text


def atomic_parts(paimon: str) -> tuple[str, int | None, int | None]:
    """The name, first argument and second argument of an atomic Paimon type.

    ``TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL`` gives ``("TIMESTAMP_LTZ", 3, None)``.
    """
    match = _TEXT.fullmatch(_without_not_null(paimon.upper().strip()))
    if match is None:
        raise NotSupportedError(f"Paimon's type {paimon} is not known here.", _OTHER_TYPE)
    name, first, second, local = match.groups()
    if local:
        name = f"{name}_LTZ"
    return name, _int(first), _int(second)


def timestamp_precision(paimon: Any) -> int | None:
    """The precision (digits of fractional seconds) of a timestamp type; None for other types."""
    if not isinstance(paimon, str):
        return None
    name, precision, _ = atomic_parts(paimon)
    if name not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return None
    return 6 if precision is None else precision


def has_nanoseconds(paimon: Any) -> bool:
    """Whether a type (JSON) is or contains a timestamp finer than microseconds."""
    if isinstance(paimon, str):
        return (timestamp_precision(paimon) or 0) > 6
    inner = [paimon[part] for part in ("element", "key", "value") if part in paimon]
    inner += [field["type"] for field in paimon.get("fields", ())]
    return any(map(has_nanoseconds, inner))


def to_spark(paimon: Any, column: str) -> str:
    """The Spark SQL type in DDL form for the Paimon type (JSON) of ``column``.

    Raises:
        NotSupportedError: Spark has no such type; names ``column``.
    """
    if isinstance(paimon, Mapping):
        return _nested_to_spark(paimon, column)
    name, first, second = atomic_parts(paimon)
    if name in _SAME_NAMES:
        return _SAME_NAMES[name]
    if name in ("CHAR", "VARCHAR"):
        length = 1 if first is None else first
        return "string" if length == _MAX_LENGTH else f"{name.lower()}({length})"
    if name == "DECIMAL":
        return f"decimal({10 if first is None else first},{second or 0})"
    if name == "TIMESTAMP":
        return "timestamp_ntz"
    if name == "TIMESTAMP_LTZ":
        return "timestamp"
    raise _unknown_to_spark(name, column)


def _nested_to_spark(paimon: Mapping[str, Any], column: str) -> str:
    name = paimon["type"].upper().split()[0]
    if name == "ARRAY":
        return f"array<{to_spark(paimon['element'], column)}>"
    if name == "MAP":
        key, value = to_spark(paimon["key"], column), to_spark(paimon["value"], column)
        return f"map<{key},{value}>"
    if name == "ROW":
        if not paimon["fields"]:
            raise NotSupportedError(
                f"Column {column} is a ROW without fields, which parquet files cannot hold.",
                "Drop the column, or give it a field.",
            )
        fields = [_field_to_spark(field, column) for field in paimon["fields"]]
        return f"struct<{','.join(fields)}>"
    raise _unknown_to_spark(name, column)


def _field_to_spark(field: Mapping[str, Any], column: str) -> str:
    name = field["name"]
    text = f"{_spelled(name)}:{to_spark(field['type'], f'{column}.{name}')}"
    if not is_nullable(field["type"]):
        text += " NOT NULL"
    if field.get("description"):
        escaped = field["description"].replace("\\", "\\\\").replace("'", "\\'")
        text += f" COMMENT '{escaped}'"
    return text


def to_paimon(spark: str, column: str, *, nullable: bool) -> Any:
    """The Paimon type (JSON, nested field ids 0) for a Spark SQL type in DDL form.

    Raises:
        RequestError: REQUEST_INVALID: ``spark`` is not a type.
        NotSupportedError: Paimon has no such type; names ``column``.
    """
    return _to_paimon(parse_type(spark), column, nullable=nullable)


def _to_paimon(spark: SparkType, column: str, *, nullable: bool) -> Any:
    suffix = "" if nullable else " NOT NULL"
    if spark.name == "array":
        (element,) = spark.fields
        return {"type": "ARRAY" + suffix, "element": _contained(element, column)}
    if spark.name == "map":
        key, value = spark.fields
        return {
            "type": "MAP" + suffix,
            "key": _contained(key, column),
            "value": _contained(value, column),
        }
    if spark.name == "struct":
        return {"type": "ROW" + suffix, "fields": [_row_field(f, column) for f in spark.fields]}
    return _atomic_to_paimon(spark, column) + suffix


def _contained(field: SparkField, column: str) -> Any:
    return _to_paimon(field.type, f"{column}.{field.name}", nullable=field.nullable)


def _row_field(field: SparkField, column: str) -> dict[str, Any]:
    document = {"id": 0, "name": field.name, "type": _contained(field, column)}
    if field.comment:
        document["description"] = field.comment
    return document


def _atomic_to_paimon(spark: SparkType, column: str) -> str:
    name, arguments = spark.name, spark.arguments
    if name in _FROM_SPARK and not arguments:
        return _FROM_SPARK[name]
    if name in ("decimal", "dec", "numeric") and len(arguments) <= 2:
        precision, scale = (*arguments, 10, 0)[:2] if not arguments else (*arguments, 0)[:2]
        if 1 <= precision <= 38 and scale <= precision:
            return f"DECIMAL({precision}, {scale})"
    if name in ("char", "character", "varchar") and len(arguments) == 1 and arguments[0] >= 1:
        return f"{'VARCHAR' if name == 'varchar' else 'CHAR'}({arguments[0]})"
    text = name.upper() + (f"({', '.join(map(str, arguments))})" if arguments else "")
    raise NotSupportedError(
        f"Column {column}: a Paimon table cannot hold Spark's type {text}.",
        "Choose another type; docs/types.md lists those that are possible.",
    )


def _unknown_to_spark(name: str, column: str) -> NotSupportedError:
    return NotSupportedError(
        f"Column {column} is of Paimon's type {name}, which Spark cannot read.",
        _OTHER_TYPE,
    )


def _spelled(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def with_field_id(field: pa.Field, field_id: int, paimon: Any, depth: int = 0) -> pa.Field:
    """``field`` and all its nested fields with their ids; ``paimon`` is its type in JSON form."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = zip(kind, paimon["fields"], strict=True)
        kind = pa.struct([with_field_id(c, each["id"], each["type"]) for c, each in children])
    elif pa.types.is_list(kind):
        kind = pa.list_(_part_with_id(kind.value_field, field_id, paimon["element"], depth + 1))
    elif pa.types.is_map(kind):
        kind = pa.map_(
            _part_with_id(kind.key_field, field_id, paimon["key"], depth + 1, sign=-1),
            _part_with_id(kind.item_field, field_id, paimon["value"], depth + 1),
        )
    return _numbered(field.with_type(kind), field_id)


def _part_with_id(
    field: pa.Field, field_id: int, paimon: Any, depth: int, sign: int = 1
) -> pa.Field:
    """An element, key or value; nested ones use the outer field's id with a greater depth."""
    inner = with_field_id(field, field_id, paimon, depth)
    return _numbered(inner, _BASE + sign * (field_id * _DEPTH_LIMIT + depth))


def _numbered(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(field_id)})
