"""The table's columns as Spark expressions over files of any of its schemas. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.read.spark_schema import spark_schema
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.identifiers import quote
from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns
from spark_jobs.spi.tables import PlannedFile, TableHandle


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Files with the same columns: what Spark reads from them, and the table's columns from it.

    ``recorded`` are the columns of the files from which ``columns`` are made.
    """

    files: Sequence[PlannedFile]
    recorded: Sequence[pa.Field]
    schema: str | StructType
    columns: Sequence[SparkColumn]


def columns_by_schema(
    table: TableHandle, files: Sequence[PlannedFile], columns: Sequence[str]
) -> list[ReadColumns]:
    """How to read ``columns`` from each group of ``files`` that were written with one schema."""
    target = pinned_table(table)
    groups: dict[int | None, list[PlannedFile]] = {}
    for file in files:
        schema_id = target.mapped_schema(target.unit_entries(file.ordinal)[0])
        groups.setdefault(schema_id, []).append(file)
    found = []
    for schema_id, members in groups.items():
        if schema_id is None:
            stored = table_schema.arrow_schema(target.table)
            recorded = [stored.field(name) for name in columns]
            today = [F.col(quote(name)) for name in columns]
            found.append(ReadColumns(members, recorded, spark_schema(table), today))
            continue
        by_name = {each.field.name: each for each in target.mappings[schema_id]}
        found.append(_older(members, [by_name[name] for name in columns]))
    return found


def _older(files: Sequence[PlannedFile], mappings: Sequence[FieldMapping]) -> ReadColumns:
    recorded = recorded_columns(mappings)
    schema = StructType([StructField(each.name, _spark_type(each.type)) for each in recorded])
    columns = [
        _value(each, None if each.source is None else F.col(quote(each.source.name)))
        for each in mappings
    ]
    return ReadColumns(files, recorded, schema, columns)


def _value(mapping: FieldMapping, source: SparkColumn | None) -> SparkColumn:
    """The table's field, from the one in the file; None: the file has none."""
    kind = _spark_type(mapping.field.type)
    if source is None:
        value = F.lit(None).cast(kind)
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
