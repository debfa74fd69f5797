"""Timestamps that Parquet files hold in nanoseconds, as pandas writes them. Driver only.

Spark reads them as BIGINT. They become timestamps if they are whole microseconds; others raise an
error in statements that use their column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructField, StructType

from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def as_stored(schema: StructType, nanos: Mapping[str, str]) -> StructType:
    """``schema`` with BIGINT at the paths of ``nanos``, which are those of ``file_types``."""
    return StructType(
        [StructField(each.name, _stored(each.name.lower(), each, nanos)) for each in schema]
    )


def with_timestamps(
    frame: DataFrame, nanos: Mapping[str, str], source: str, row: str | None
) -> DataFrame:
    """``frame`` with timestamps in place of the nanoseconds at the paths of ``nanos``.

    ``nanos`` maps them to the types in the files. ``source`` names the source in errors, and
    ``row`` is an SQL expression for the file and the number of a row in it, if these are known.

    Raises, when a row is evaluated:
        DataError: VALUE_NOT_STORABLE, a value has parts of a microsecond.
    """
    texts = _Conversion(nanos, source, row)
    return frame.selectExpr(
        *(
            named(texts.of(quote(each.name), each.dataType, each.name.lower()), each.name)
            for each in frame.schema
        )
    )


def _stored(path: str, field: StructField, nanos: Mapping[str, str]) -> DataType:
    return _stored_type(path, field.dataType, nanos)


def _stored_type(path: str, kind: DataType, nanos: Mapping[str, str]) -> DataType:
    if path in nanos:
        return LongType()
    if isinstance(kind, StructType):
        fields = [(each, f"{path}.{each.name.lower()}") for each in kind]
        return StructType(
            [StructField(each.name, _stored(below, each, nanos)) for each, below in fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(f"{path}.element", kind.elementType, nanos))
    if isinstance(kind, MapType):
        key = _stored_type(f"{path}.key", kind.keyType, nanos)
        return MapType(key, _stored_type(f"{path}.value", kind.valueType, nanos))
    return kind


@dataclass(frozen=True, slots=True)
class _Conversion:
    nanos: Mapping[str, str]
    source: str
    row: str | None

    def of(self, value: str, kind: DataType, path: str, depth: int = 0) -> str:
        """The value of the SQL expression ``value``, which is at ``path``, with timestamps."""
        if path in self.nanos:
            return self._timestamp(value, path)
        if not any(each.startswith(f"{path}.") for each in self.nanos):
            return value
        if isinstance(kind, StructType):
            fields = ", ".join(
                named(
                    self.of(
                        f"{value}.{quote(field.name)}",
                        field.dataType,
                        f"{path}.{field.name.lower()}",
                        depth,
                    ),
                    field.name,
                )
                for field in kind
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({fields}) END"
        item, key = (f"{RESERVED_PREFIX}{name}_{depth}" for name in ("item", "key"))
        if isinstance(kind, MapType):
            new_key = self.of(key, kind.keyType, f"{path}.key", depth + 1)
            new = self.of(item, kind.valueType, f"{path}.value", depth + 1)
            keys = f"transform_keys({value}, ({key}, {item}) -> {new_key})"
            return f"transform_values({keys}, ({key}, {item}) -> {new})"
        assert isinstance(kind, ArrayType)  # noqa: S101 - no other type has parts
        new = self.of(item, kind.elementType, f"{path}.element", depth + 1)
        return f"transform({value}, {item} -> {new})"

    def _timestamp(self, value: str, path: str) -> str:
        micros = f"{value} div 1000"
        is_local = self.nanos[path].startswith("TIMESTAMP_NTZ")
        # Intervals multiply without rounding.
        local = f"{_EPOCH} + ({micros}) * INTERVAL '0.000001' SECOND"
        moment = local if is_local else f"timestamp_micros({micros})"
        place = text_literal(f"{self.source}: column {path}")
        row = "''" if self.row is None else f"concat(' of ', {self.row})"
        problem = text_literal(" nanoseconds after 1970 are not whole microseconds")
        failure = raised(
            ErrorCode.VALUE_NOT_STORABLE,
            f"concat({place}, {row}, ': ', {value}, {problem})",
            "Round the values where the files are written, or declare the column as BIGINT in the "
            "source's schema and round them in a query over the source.",
        )
        is_whole = f"{value} % 1000 = 0"
        return f"CASE WHEN {is_whole} THEN {moment} WHEN NOT ({is_whole}) THEN {failure} END"
