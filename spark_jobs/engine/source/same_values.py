"""Expressions that are equal only for the same values, where Spark's GROUP BY takes more for one.

GROUP BY takes 0.0 and -0.0 for one value, and maps not at all.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from spark_jobs.contract.identifiers import quote


def same_value(value: str, kind: DataType, depth: int = 0) -> str:
    """The expression for the expression ``value`` of type ``kind``; empty: the value itself."""
    inner = f"v{depth}"
    if isinstance(kind, FloatType | DoubleType):
        return f"CAST({value} AS STRING)"
    if isinstance(kind, ArrayType):
        element = same_value(inner, kind.elementType, depth + 1)
        return f"transform({value}, {inner} -> {element})" if element else ""
    if isinstance(kind, MapType):
        key = same_value(f"{inner}.key", kind.keyType, depth + 1) or f"{inner}.key"
        held = same_value(f"{inner}.value", kind.valueType, depth + 1) or f"{inner}.value"
        pair = f"named_struct('k', {key}, 'v', {held})"
        return f"transform(map_entries({value}), {inner} -> {pair})"
    if isinstance(kind, StructType):
        return _same_struct(value, kind, depth)
    return ""


def _same_struct(value: str, kind: StructType, depth: int) -> str:
    places = [f"{value}.{quote(field.name)}" for field in kind]
    parts = [
        same_value(place, field.dataType, depth) for place, field in zip(places, kind, strict=True)
    ]
    if not any(parts):
        return ""
    named = ", ".join(f"'f{n}', {part or places[n]}" for n, part in enumerate(parts))
    return f"IF({value} IS NULL, NULL, named_struct({named}))"
