"""The columns of a table as Spark expressions over files with other columns. Driver only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns
from spark_jobs.spi.tables import PlannedFile


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Files with the same columns: what Spark reads from them, and the table's columns from it.

    ``recorded`` are the columns of the files from which ``columns`` are made; ``exact`` names those
    that are known to be stored as they are recorded.
    """

    files: Sequence[PlannedFile]
    recorded: Sequence[pa.Field]
    schema: str | StructType
    columns: Sequence[SparkColumn]
    exact: frozenset[str] = frozenset()


def mapped_columns(files: Sequence[PlannedFile], mappings: Sequence[FieldMapping]) -> ReadColumns:
    """How to read the columns that ``mappings`` lead to, in that order, from ``files``.

    Their sources are the fields of the files.
    """
    recorded = recorded_columns(mappings)
    schema = StructType([StructField(each.name, _spark_type(each.type)) for each in recorded])
    columns = [
        _value(each, None if each.source is None else F.col(quote(each.source.name)))
        for each in mappings
    ]
    exact = frozenset(each.name for each in recorded)
    return ReadColumns(files, recorded, schema, columns, exact)


def _value(mapping: FieldMapping, source: SparkColumn | None) -> SparkColumn:
    """The table's field, from the one in the file; None: the file has none."""
    kind = _spark_type(mapping.field.type)
    if source is None:
        value = _constant(mapping).cast(kind)
    elif mapping.is_copy:
        value = source
    elif not mapping.parts:
        value = _padded(source, mapping).cast(kind)
    elif pa.types.is_struct(mapping.field.type):
        fields = [_value(part, _field_of(source, part)) for part in mapping.parts]
        value = F.when(source.isNotNull(), F.struct(*fields))
    elif pa.types.is_map(mapping.field.type):
        value = _map(source, *mapping.parts)
    else:
        (element,) = mapping.parts
        value = F.transform(source, lambda each: _value(element, each))
    return value.alias(mapping.field.name)


def _constant(mapping: FieldMapping) -> SparkColumn:
    value = None if mapping.constant is None else mapping.constant.as_py()
    # Spark would take a datetime without a zone for one in the zone of this machine.
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(" "))
    return F.lit(value)


def _field_of(struct: SparkColumn, part: FieldMapping) -> SparkColumn | None:
    return None if part.source is None else struct.getField(part.source.name)


def _map(source: SparkColumn, key: FieldMapping, value: FieldMapping) -> SparkColumn:
    def entry(each: SparkColumn) -> SparkColumn:
        return F.struct(_value(key, each.getField("key")), _value(value, each.getField("value")))

    return F.map_from_entries(F.transform(F.map_entries(source), entry))


def _padded(source: SparkColumn, mapping: FieldMapping) -> SparkColumn:
    if not mapping.padded_to:
        return source
    fill = F.lit(" ") if pa.types.is_string(mapping.field.type) else F.lit(bytearray(1))
    return F.call_function("rpad", source, F.lit(mapping.padded_to), fill)


def _spark_type(kind: pa.DataType) -> DataType:
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
