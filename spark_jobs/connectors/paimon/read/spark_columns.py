"""The table's columns as Spark expressions over files of any of its schemas. Driver only."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.read.spark_schema import spark_schema
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.contract.sql_text import quote
from spark_jobs.spark_reads.mapped_columns import ReadColumns, mapped_columns
from spark_jobs.spi.tables import PlannedFile, TableHandle


def columns_by_schema(
    table: TableHandle, files: Sequence[PlannedFile], columns: Sequence[str]
) -> list[ReadColumns]:
    """How to read ``columns`` from each group of ``files`` that were written with one schema."""
    target = pinned_table(table)
    groups: dict[int | None, list[PlannedFile]] = {}
    for file in files:
        schema_id = target.columns.mapped_schema(target.files.unit_entries(file.ordinal)[0])
        groups.setdefault(schema_id, []).append(file)
    read_columns = []
    for schema_id, members in groups.items():
        if schema_id is None:
            stored = table_schema.arrow_schema(target.table)
            recorded = [stored.field(name) for name in columns]
            today = [F.col(quote(name)) for name in columns]
            read_columns.append(ReadColumns(members, recorded, spark_schema(table), today))
            continue
        by_name = {each.field.name: each for each in target.files.mappings[schema_id]}
        read_columns.append(mapped_columns(members, [by_name[name] for name in columns]))
    return read_columns
