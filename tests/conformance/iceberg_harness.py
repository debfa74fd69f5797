"""Iceberg tables, made and read with pyiceberg itself, in a SQL catalog on a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.schema import assign_fresh_schema_ids

from spark_jobs.contract.request import CatalogSpec
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ROW_GROUP_SIZE, Row, SeedTable
from tests.support import iceberg_files, iceberg_version_3
from tests.support.table_kinds import TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector

_NARROW = re.compile(r"TINYINT|SMALLINT|(VARCHAR\(\d+\))")


class IcebergHarness(Harness):
    """Tables; those of a kind with a transform are partitioned by it, not by ``p``."""

    can_move = False

    def __init__(
        self, spark: SparkSession, warehouse: Path, *, partitioned: bool, kind: TableKind
    ) -> None:
        self.kind = kind
        self.marks_rows = kind.marks_rows
        super().__init__(spark, warehouse, partitioned=partitioned)

    def placed_by(self, table: SeedTable) -> str | None:
        if not self.kind.transform:
            return None
        return table.time if self.kind.transform == "day" else "id"

    @property
    def catalog(self) -> CatalogSpec:
        return iceberg_files.catalog_spec(self.warehouse)

    def open(self) -> Connector:
        from spark_jobs.connectors.registry import open_connector

        return open_connector(self.catalog, {})

    def _table(self) -> Any:
        return iceberg_files.open_catalog(self.warehouse).load_table(
            (TARGET.database, TARGET.table)
        )

    def create(self, table: SeedTable) -> None:
        from spark_jobs.arrow_types import arrow_schema

        ddl = ", ".join(
            f"`{each.name}` {_stored(each.type)}{'' if each.nullable else ' NOT NULL'}"
            for each in table.columns
        )
        catalog = iceberg_files.open_catalog(self.warehouse)
        catalog.create_namespace(TARGET.database)
        arrow = arrow_schema(self.spark.createDataFrame([], ddl).schema)
        schema = assign_fresh_schema_ids(catalog._convert_schema_if_needed(arrow))
        column = "p" if self.partitioned else self.placed_by(table)
        layout = {}
        if column is not None and not self.kind.older_files:
            transform = "identity" if self.partitioned else self.kind.transform
            layout["partition_spec"] = iceberg_files.spec_by(schema, column, transform)
        mode = "merge-on-read" if self.marks_rows else "copy-on-write"
        properties = {
            "format-version": "2",
            "write.parquet.row-group-limit": str(ROW_GROUP_SIZE),
            "write.metadata.metrics.default": "full",
            **{f"write.{each}.mode": mode for each in ("merge", "update", "delete")},
        }
        identifier = (TARGET.database, TARGET.table)
        made = catalog.create_table(identifier, schema, properties=properties, **layout)
        # Commits take most of the time.
        columns = made.schema().as_arrow()
        with made.transaction() as transaction, iceberg_files.transforms_by_value():
            for rows in table.files:
                transaction.append(pa.Table.from_pylist(list(rows), schema=columns))
        if column is not None and self.kind.older_files:
            with made.update_spec() as update:
                update.add_field(column, self.kind.transform, f"{column}_truncate")
        if self.kind.version == 3:
            iceberg_version_3.upgrade(catalog.load_table(identifier))
            iceberg_version_3.give_ids(self.catalog, TARGET)

    def append(self, rows: Sequence[Row]) -> None:
        if self.kind.version == 3:
            iceberg_version_3.append(self.catalog, TARGET, rows)
            return
        table = self._table()
        table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))

    def latest_snapshot(self) -> int | None:
        snapshot = self._table().current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    def follows(self, before: int | None, after: int | None) -> bool:
        snapshot = self._table().snapshot_by_id(after)
        return snapshot is not None and snapshot.parent_snapshot_id == before

    def read(self) -> list[Row]:
        return iceberg_files.rows_of(self._table())

    def live_files(self) -> list[Path]:
        return iceberg_files.data_paths(self._table())

    def live_indexes(self) -> list[Path]:
        return iceberg_files.delete_paths(self._table())

    def deleted_rows(self) -> Mapping[Path, Sequence[int]]:
        return iceberg_files.deleted_rows(self._table())


def _stored(kind: str) -> str:
    """The type, or the wider one that Spark with Iceberg stores instead."""
    return _NARROW.sub(lambda found: "STRING" if found[1] else "INT", kind)
