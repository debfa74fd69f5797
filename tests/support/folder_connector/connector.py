"""A table format in miniature: a folder of parquet files and one JSON manifest per snapshot.

It exists to show that the engine knows no table format: the same behaviours run on it as on real
tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.properties import published_properties
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.datafiles.values import decode_value
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.connector import Connector, ConnectorMergeWrites, ConnectorMetadata
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.spi.tables import CommittedSnapshot, PlannedFile, RowChangeParadigm, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, WriteLayout
from tests.support.folder_connector import storage
from tests.support.folder_connector.sink import FolderSinks


@dataclass(frozen=True)
class FolderMetadata(ConnectorMetadata):
    """Tables are folders ``<warehouse>/<database>/<table>``."""

    root: Path
    paradigm: RowChangeParadigm = RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def folder(self, name: TableName) -> Path:
        """Where a table is."""
        return self.root / name.database / name.table

    def load_table(self, name: TableName) -> TableHandle:
        folder = self.folder(name)
        if not (folder / "schema.json").exists():
            raise CatalogError(ErrorCode.TABLE_NOT_FOUND, f"table {name} does not exist")
        columns, partition_keys = storage.read_schema(folder)
        return TableHandle(name, columns, partition_keys, storage.latest_snapshot(folder))

    def create_table(self, name: TableName, spec: CreateTableSpec) -> bool:
        storage.write_schema(self.folder(name), spec)
        return True

    def require_writable(self, table: TableHandle) -> None:
        return None

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        return self.paradigm

    def insert_layout(self, table: TableHandle) -> WriteLayout:
        return WriteLayout(table.partition_keys, table.partition_keys)

    def update_layout(self, table: TableHandle) -> WriteLayout:
        return WriteLayout((f"{ROW_ID}.file",), (f"{ROW_ID}.file", f"{ROW_ID}.position"))

    def plan_files(self, table: TableHandle) -> tuple[PlannedFile, ...]:
        folder = self.folder(table.name)
        return tuple(
            storage.planned_file(ordinal, folder / name, table.partition_keys)
            for ordinal, name in enumerate(
                storage.read_manifest(folder, table.snapshot_id)["files"]
            )
        )


class FolderScan:
    """Reads with Spark; a file's ordinal is looked up in a literal map."""

    arrow_row_id = None

    def arrow_rows(
        self,
        spark: SparkSession | None,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
        tasks_per_core: int = 2,
    ) -> None:
        return None

    def read(
        self,
        spark: SparkSession,
        table: TableHandle,
        files: Sequence[PlannedFile],
        columns: Sequence[str],
        dynamic_filter: DynamicFilter | None = None,
    ) -> DataFrame:
        schema = storage.ddl(table.columns)
        names = [f"`{name}`" for name in columns]
        if not files:
            row_id = F.expr("cast(null as struct<file:int,position:bigint>)")
            return spark.createDataFrame([], schema).select(*names, row_id.alias(ROW_ID))
        ordinals = F.create_map(
            *(F.lit(each) for file in files for each in (Path(file.path).name, file.ordinal))
        )
        frame = (
            spark.read.schema(schema)
            .option("datetimeRebaseMode", "CORRECTED")
            .parquet(*(f"file://{file.path}" for file in files))
        )
        row_id = F.struct(
            ordinals[F.col("_metadata.file_name")].alias("file"),
            F.col("_metadata.row_index").alias("position"),
        )
        return frame.select(*names, row_id.alias(ROW_ID))


@dataclass(frozen=True)
class FolderWrites(ConnectorMergeWrites):
    """A write puts its id into the names of its files, so that all of them can be removed."""

    metadata: FolderMetadata
    row_group_size: int

    def begin_merge(self, table: TableHandle, write: MergeWrite) -> MergeHandle:
        sinks = FolderSinks(
            folder=str(self.metadata.folder(table.name)),
            write_id=uuid.uuid4().hex,
            files={file.ordinal: Path(file.path).name for file in write.files},
            schema=storage.arrow_schema(SparkSession.active(), table.columns),
            partition_keys=table.partition_keys,
            assigned_columns=write.assigned_columns,
            row_group_size=self.row_group_size,
            dry_run=write.dry_run,
        )
        return MergeHandle(sinks, native=(sinks.write_id, write.require_wanted))

    def drop_files(
        self, table: TableHandle, handle: MergeHandle, files: Sequence[PlannedFile]
    ) -> list[Fragment]:
        return [
            Fragment(
                {"added": [], "removed": [Path(file.path).name]},
                files_removed=1,
                bytes_removed=file.size,
            )
            for file in files
        ]

    def changed_partitions(
        self, table: TableHandle, fragments: Sequence[Fragment]
    ) -> Sequence[Mapping[str, Any]]:
        of_file = {Path(file.path).name: file.partition for file in self.metadata.plan_files(table)}
        documents = [fragment.document for fragment in fragments]
        removed = [of_file[name] for each in documents for name in each["removed"]]
        places = [map(decode_value, each["partition"]) for each in documents if "partition" in each]
        return [*removed, *(dict(zip(table.partition_keys, each, strict=True)) for each in places)]

    def finish_merge(
        self,
        table: TableHandle,
        handle: MergeHandle,
        fragments: Sequence[Fragment],
        properties: Mapping[str, str],
    ) -> CommittedSnapshot:
        folder = self.metadata.folder(table.name)
        removed = {name for each in fragments for name in each.document["removed"]}
        added = [name for each in fragments for name in each.document["added"]]
        base = storage.read_manifest(folder, table.snapshot_id)["files"]
        kept = [name for name in base if name not in removed]
        snapshot_id = (table.snapshot_id or 0) + 1
        _, require_wanted = handle.native
        require_wanted()
        found = published_properties(properties, 1, 0)
        storage.publish(folder, snapshot_id, [*kept, *added], found)
        return CommittedSnapshot(snapshot_id, found)

    def abort_merge(self, table: TableHandle, handle: MergeHandle) -> None:
        write_id, _ = handle.native
        for path in self.metadata.folder(table.name).glob(f"{write_id}-*"):
            path.unlink()

    def release_guard(self, table: TableHandle, operation_id: str) -> None:
        return None

    def find_commit(self, table: TableHandle, operation_id: str) -> CommittedSnapshot | None:
        folder = self.metadata.folder(table.name)
        for snapshot_id in range(table.snapshot_id or 0, 0, -1):
            properties = storage.read_manifest(folder, snapshot_id)["properties"]
            if properties.get("merge.operation-id") == operation_id:
                return CommittedSnapshot(snapshot_id, properties)
        return None

    def recall(self, table: TableHandle, snapshot_id: int) -> CommittedSnapshot | None:
        if not 0 < snapshot_id <= (table.snapshot_id or 0):
            return None
        manifest = storage.read_manifest(self.metadata.folder(table.name), snapshot_id)
        return CommittedSnapshot(snapshot_id, manifest["properties"])


def open_folder_connector(
    warehouse: str,
    row_group_size: int,
    paradigm: RowChangeParadigm = RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS,
) -> Connector:
    """The connector on a warehouse folder.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND.
    """
    if not Path(warehouse).is_dir():
        raise CatalogError(ErrorCode.WAREHOUSE_NOT_FOUND, f"warehouse {warehouse} does not exist")
    metadata = FolderMetadata(Path(warehouse), paradigm)
    return Connector(
        metadata=metadata,
        scan=FolderScan(),
        writes=FolderWrites(metadata, row_group_size),
        storage=WarehouseStorage(pafs.LocalFileSystem(), warehouse, f"file://{warehouse}"),
    )
