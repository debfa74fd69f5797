"""A table format in miniature: a folder of parquet files and one JSON manifest per snapshot.

It exists to show that the engine knows no table format: the same behaviours run on it as on real
tables. ``catalog.options`` takes ``row_group_size``.
"""

from __future__ import annotations

import json
import os
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from spark_jobs.errors import CatalogError, CommitError, ErrorCode
from spark_jobs.spi.connector import Connector, WarehouseStorage
from spark_jobs.spi.rows import ROW_ID
from spark_jobs.spi.tables import (
    Column,
    ColumnRange,
    CommittedSnapshot,
    PlannedFile,
    RowChangeParadigm,
    TableHandle,
)
from spark_jobs.spi.writes import MergeHandle, WriteLayout
from tests.folder_connector.sink import FolderSinks


class FolderMetadata:
    """Tables are folders ``<warehouse>/<database>/<table>``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name):
        return self.root / name.database / name.table

    def load_table(self, name):
        folder = self.folder(name)
        if not (folder / "schema.json").exists():
            raise CatalogError(ErrorCode.TABLE_NOT_FOUND, f"table {name} does not exist")
        schema = json.loads((folder / "schema.json").read_text())
        return TableHandle(
            name=name,
            columns=tuple(Column(**column) for column in schema["columns"]),
            partition_keys=tuple(schema["partition_keys"]),
            snapshot_id=latest_snapshot(folder),
        )

    def create_table(self, name, spec):
        folder = self.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        columns = [{"name": c.name, "type": c.type, "nullable": c.nullable} for c in spec.columns]
        document = {"columns": columns, "partition_keys": list(spec.partition_keys)}
        (folder / "schema.json").write_text(json.dumps(document))
        return True

    def row_change_paradigm(self, table):
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def merge_row_id_columns(self, table, updated_columns):
        return ()

    def insert_layout(self, table):
        return WriteLayout(table.partition_keys, table.partition_keys)

    def update_layout(self, table):
        return WriteLayout((f"{ROW_ID}.file",), (f"{ROW_ID}.file", f"{ROW_ID}.position"))

    def plan_files(self, table):
        folder = self.folder(table.name)
        names = read_manifest(folder, table.snapshot_id)["files"]
        return tuple(
            planned_file(ordinal, folder / name, table.partition_keys)
            for ordinal, name in enumerate(names)
        )


class FolderScan:
    """Reads with Spark; a file's ordinal is looked up in a literal map."""

    def read(self, spark, table, files, columns):
        schema = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
        if not files:
            frame = spark.createDataFrame([], schema)
            row_id = F.expr("cast(null as struct<file:int,position:bigint>)")
            return frame.select(*columns, row_id.alias(ROW_ID))
        ordinals = F.create_map(
            *(F.lit(each) for file in files for each in (Path(file.path).name, file.ordinal))
        )
        row_id = F.struct(
            ordinals[F.col("_metadata.file_name")].alias("file"),
            F.col("_metadata.row_index").alias("position"),
        )
        frame = spark.read.schema(schema).parquet(*(f"file://{file.path}" for file in files))
        return frame.select(*columns, row_id.alias(ROW_ID))


class FolderWrites:
    """A commit is a hard link to the next manifest's name."""

    def __init__(self, metadata, row_group_size):
        self.metadata = metadata
        self.row_group_size = row_group_size

    def begin_merge(self, table, write):
        schema = to_arrow_schema(spark_schema(table))
        sinks = FolderSinks(
            str(self.metadata.folder(table.name)),
            {file.ordinal: Path(file.path).name for file in write.files},
            schema,
            write.assigned_columns,
            self.row_group_size,
        )
        return MergeHandle(sinks)

    def finish_merge(self, table, handle, fragments, properties):
        folder = self.metadata.folder(table.name)
        removed = {name for each in fragments for name in each.document["removed"]}
        added = [name for each in fragments for name in each.document["added"]]
        base = read_manifest(folder, table.snapshot_id)["files"]
        files = [name for name in base if name not in removed] + added
        snapshot_id = (table.snapshot_id or 0) + 1
        publish(folder, snapshot_id, {"files": files, "properties": dict(properties)})
        return CommittedSnapshot(snapshot_id, properties)

    def abort_merge(self, table, handle, fragments):
        for fragment in fragments:
            for name in fragment.document["added"]:
                (self.metadata.folder(table.name) / name).unlink()

    def release_guard(self, table, operation_id):
        return None

    def find_commit(self, table, operation_id):
        folder = self.metadata.folder(table.name)
        for snapshot_id in range(table.snapshot_id or 0, 0, -1):
            properties = read_manifest(folder, snapshot_id)["properties"]
            if properties.get("merge.operation-id") == operation_id:
                return CommittedSnapshot(snapshot_id, properties)
        return None


def open_folder_connector(warehouse: str, row_group_size: int = 10) -> Connector:
    """The connector on a warehouse folder."""
    metadata = FolderMetadata(Path(warehouse))
    return Connector(
        metadata=metadata,
        scan=FolderScan(),
        writes=FolderWrites(metadata, row_group_size),
        storage=WarehouseStorage(pafs.LocalFileSystem(), warehouse, f"file://{warehouse}"),
    )


def append(connector: Connector, table: TableHandle, batches: list[list[dict]]) -> None:
    """One commit that adds a file for each batch of rows."""
    folder = connector.metadata.folder(table.name)
    schema = to_arrow_schema(spark_schema(table))
    names = []
    for batch in batches:
        name = f"{len(list(folder.iterdir())):04d}-{os.urandom(4).hex()}.parquet"
        data = pa.Table.from_pylist(batch, schema=schema)
        pq.write_table(data, folder / name, row_group_size=connector.writes.row_group_size)
        names.append(name)
    latest = latest_snapshot(folder)
    files = read_manifest(folder, latest)["files"] + names
    publish(folder, (latest or 0) + 1, {"files": files, "properties": {}})


def read_rows(connector: Connector, name) -> list[dict]:
    """All rows of the latest snapshot, in file order."""
    table = connector.metadata.load_table(name)
    files = connector.metadata.plan_files(table)
    return reduce(list.__add__, (pq.read_table(file.path).to_pylist() for file in files), [])


def spark_schema(table):
    from pyspark.sql import SparkSession

    ddl = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
    return SparkSession.getActiveSession().createDataFrame([], ddl).schema


def latest_snapshot(folder):
    ids = [int(path.stem.split("-")[1]) for path in folder.glob("manifest-*.json")]
    return max(ids, default=None)


def read_manifest(folder, snapshot_id):
    if snapshot_id is None:
        return {"files": [], "properties": {}}
    return json.loads((folder / f"manifest-{snapshot_id}.json").read_text())


def publish(folder, snapshot_id, document):
    temporary = folder / f"{os.urandom(8).hex()}.tmp"
    temporary.write_text(json.dumps(document))
    try:
        os.link(temporary, folder / f"manifest-{snapshot_id}.json")
    except FileExistsError:
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT, f"snapshot {snapshot_id} was made by another writer"
        ) from None
    finally:
        temporary.unlink()


def planned_file(ordinal, path, partition_keys):
    data = pq.read_table(path)
    ranges = {}
    for name in data.column_names:
        column = data[name]
        bounds = (None, None)
        if not pa.types.is_nested(column.type) and column.null_count < len(column):
            bounds = tuple(pc.min_max(column).as_py().values())
        ranges[name] = ColumnRange(*bounds, column.null_count)
    partition = {key: data[key][0].as_py() for key in partition_keys}
    size = path.stat().st_size
    return PlannedFile(ordinal, str(path), partition, data.num_rows, size, ranges)
