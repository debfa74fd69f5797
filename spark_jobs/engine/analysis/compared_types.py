"""Which types have values that Spark compares and sorts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

# By name: PySpark 3.5 lacks some.
_NOT_COMPARED: Final = (*("VariantType", "CalendarIntervalType", "GeometryType", "GeographyType"),)


def is_comparable(kind: DataType) -> bool:
    """Whether Spark compares values of a type."""
    return not any(
        isinstance(each, MapType) or type(each).__name__ in _NOT_COMPARED for each in _parts(kind)
    )


def _parts(kind: DataType) -> Iterator[DataType]:
    yield kind
    inner: list[DataType] = []
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, StructType):
        inner = [each.dataType for each in kind]
    for each in inner:
        yield from _parts(each)
