"""Iceberg tables, made and read with pyiceberg itself, in a SQL catalog on a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.connectors.iceberg.read.scan import IcebergScan, Reader
from spark_jobs.contract.request import CatalogSpec
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ROW_GROUP_SIZE, Row, SeedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.connector import Connector

_CATALOG = "tests"


class IcebergHarness(Harness):
    """Tables of version 2; ``transform`` is that of ``p`` in partitioned ones.

    ``marks``: rows are merged on read. ``reader``: what reads data files.
    """

    can_move = False

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        *,
        partitioned: bool,
        transform: str = "identity",
        reader: Reader = "auto",
        marks: bool = False,
    ) -> None:
        self.marks_rows = marks
        self.transform = transform
        self.reader = reader
        super().__init__(spark, warehouse, partitioned=partitioned)

    @property
    def catalog(self) -> CatalogSpec:
        options = {
            "type": "sql",
            "uri": f"sqlite:///{self.warehouse}/catalog.db",
            "warehouse": str(self.warehouse),
            "catalog-name": _CATALOG,
        }
        return CatalogSpec("iceberg", str(self.warehouse), options)

    def open(self) -> Connector:
        from spark_jobs.connectors.registry import open_connector

        return replace(open_connector(self.catalog, {}), scan=IcebergScan(self.reader))

    def _catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        uri, place = self.catalog.options["uri"], f"file://{self.warehouse}"
        return SqlCatalog(_CATALOG, uri=uri, warehouse=place)

    def _table(self) -> Any:
        return self._catalog().load_table((TARGET.database, TARGET.table))

    def create(self, table: SeedTable) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import parse_transform

        from spark_jobs.arrow_types import arrow_schema

        ddl = ", ".join(
            f"`{each.name}` {each.type}{'' if each.nullable else ' NOT NULL'}"
            for each in table.columns
        )
        catalog = self._catalog()
        catalog.create_namespace(TARGET.database)
        schema = catalog._convert_schema_if_needed(  # gives ids to the fields
            arrow_schema(self.spark.createDataFrame([], ddl).schema)
        )
        spec = PartitionSpec()
        if self.partitioned:
            source = schema.find_field("p").field_id
            name = "p" if self.transform == "identity" else "p_part"
            transform = parse_transform(self.transform)
            spec = PartitionSpec(PartitionField(source, 1000, transform, name))
        mode = "merge-on-read" if self.marks_rows else "copy-on-write"
        properties = {
            "format-version": "2",
            "write.parquet.row-group-limit": str(ROW_GROUP_SIZE),
            "write.metadata.metrics.default": "full",
            **{f"write.{each}.mode": mode for each in ("merge", "update", "delete")},
        }
        catalog.create_table(
            (TARGET.database, TARGET.table), schema, partition_spec=spec, properties=properties
        )
        # Commits take most of the time.
        made = self._table()
        columns = made.schema().as_arrow()
        with made.transaction() as transaction:
            for rows in table.files:
                transaction.append(pa.Table.from_pylist(list(rows), schema=columns))

    def append(self, rows: Sequence[Row]) -> None:
        table = self._table()
        table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))

    def latest_snapshot(self) -> int | None:
        snapshot = self._table().current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    def follows(self, before: int | None, after: int | None) -> bool:
        snapshot = self._table().snapshot_by_id(after)
        return snapshot is not None and snapshot.parent_snapshot_id == before

    def read(self) -> list[Row]:
        # pyiceberg reads NULL lists of structs as empty ones.
        deleted, schema = self.deleted_rows(), self._table().schema()
        found = []
        for path in self.live_files():
            rows = pq.ParquetFile(path).read()
            ids = [int(field.metadata[b"PARQUET:field_id"]) for field in rows.schema]
            named = rows.rename_columns([schema.find_column_name(each) for each in ids])
            gone = set(deleted.get(path, ()))
            found += [row for n, row in enumerate(named.to_pylist()) if n not in gone]
        return found

    def live_files(self) -> list[Path]:
        tasks = self._table().scan().plan_files()
        return [Path(urlsplit(task.file.file_path).path) for task in tasks]

    def live_indexes(self) -> list[Path]:
        tasks = self._table().scan().plan_files()
        places = {each.file_path for task in tasks for each in task.delete_files}
        return sorted(Path(urlsplit(each).path) for each in places)

    def deleted_rows(self) -> Mapping[Path, Sequence[int]]:
        found: dict[Path, list[int]] = {}
        for path in self.live_indexes():
            for row in pq.ParquetFile(path).read().to_pylist():
                found.setdefault(Path(urlsplit(row["file_path"]).path), []).append(row["pos"])
        return found
