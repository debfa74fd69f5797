"""Tables for the connector's tests: made, changed and read without Spark or the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.library import stored_snapshots, table_schema
from spark_jobs.connectors.paimon.write.bucket_choice import bucket_column
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.sinks import MergeHandle
from spark_jobs.spi.tables import CommittedSnapshot, TableHandle
from spark_jobs.spi.writes import Fragment, MergeWrite, Operation

NAME = TableName("shop", "orders")
ROW_ID = pa.struct([("file", pa.int32()), ("position", pa.int64())])
TARGET_SIZE = 128 * 1024 * 1024


def create(
    connector: Connector,
    columns: Mapping[str, str],
    partition_keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    name: TableName = NAME,
    primary_key: Sequence[str] = (),
) -> TableHandle:
    """A new table with columns given as name and Spark type; only those of a key are NOT NULL."""
    spec = CreateTableSpec(
        columns=tuple(ColumnSpec(n, kind) for n, kind in columns.items()),
        partition_keys=tuple(partition_keys),
        primary_key=tuple(primary_key),
        table_options=dict(options or {}),
    )
    assert connector.metadata.create_table(name, spec)
    return connector.metadata.load_table(name)


def schema_of(table: TableHandle) -> pa.Schema:
    """The Arrow schema of the table's files."""
    return table_schema.arrow_schema(table.native.table)


def change_rows(
    table: TableHandle, operation: int, values: Sequence[Mapping[str, Any]], case: int = 0
) -> pa.RecordBatch:
    """Change rows; ``file`` and ``position`` among the values make the row id."""
    schema = schema_of(table)
    ids = [{"file": v["file"], "position": v["position"]} if "file" in v else None for v in values]
    columns = {
        rows.OPERATION: pa.array([operation] * len(values), pa.int8()),
        rows.CASE_NUMBER: pa.array([case] * len(values), pa.int32()),
        rows.ROW_ID: pa.array(ids, ROW_ID),
        rows.FROM_UPDATE: pa.array([False] * len(values)),
    }
    for field in schema:
        columns[field.name] = pa.array([v.get(field.name) for v in values], field.type)
    return pa.RecordBatch.from_pydict(columns)


def inserts(table: TableHandle, values: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """INSERT rows, clustered by partition and bucket as the engine does it."""
    buckets = [0] * len(values)
    derived = bucket_column(table.native, pafs.LocalFileSystem())
    if derived is not None:
        buckets = derived.function(change_rows(table, rows.INSERT, values))[0].to_pylist()

    def place(index: int) -> tuple[str, ...]:
        partition = [repr(values[index].get(key)) for key in table.partition_keys]
        return (*partition, f"{buckets[index]:09}")

    order = sorted(range(len(values)), key=place)
    batch = change_rows(table, rows.INSERT, [values[index] for index in order])
    if derived is None:
        return batch
    sorted_buckets = pa.array([buckets[index] for index in order], pa.int32())
    return batch.append_column(BUCKET_COLUMN, sorted_buckets)


def begin(
    connector: Connector,
    table: TableHandle,
    operation_id: str = "op",
    assigned: tuple[tuple[str, ...], ...] = ((),),
    target_file_size: int = TARGET_SIZE,
) -> MergeHandle:
    """A merge that reads all files."""
    files = connector.metadata.plan_files(table)
    operation = Operation(operation_id, "digest", {})
    write = MergeWrite(operation, files, assigned, (), target_file_size)
    return connector.writes.begin_merge(table, write)


def store(handle: MergeHandle, *batches: pa.RecordBatch, task: str = "task-0") -> list[Fragment]:
    """What one sink task makes of the batches, sent through JSON as the engine does."""
    sink = handle.sinks.open(task)
    for batch in batches:
        sink.store_merged_rows(batch)
    return [Fragment.from_json(fragment.to_json()) for fragment in sink.finish()]


def merge(
    connector: Connector,
    table: TableHandle,
    *batches: pa.RecordBatch,
    operation_id: str = "op",
    assigned: tuple[tuple[str, ...], ...] = ((),),
    properties: Mapping[str, str] | None = None,
) -> CommittedSnapshot:
    """A whole merge in one task."""
    handle = begin(connector, table, operation_id, assigned)
    fragments = store(handle, *batches)
    return connector.writes.finish_merge(table, handle, fragments, properties or {})


def append(
    connector: Connector,
    values: Sequence[Mapping[str, Any]],
    operation_id: str = "append",
    name: TableName = NAME,
) -> CommittedSnapshot:
    """Commit new rows in a snapshot of their own."""
    table = connector.metadata.load_table(name)
    return merge(connector, table, inserts(table, values), operation_id=operation_id)


def four_files(connector: Connector) -> TableHandle:
    """A table with two files of two rows in each of two partitions, snapshot 2."""
    create(connector, {"id": "int", "p": "int"}, ["p"])
    append(connector, [{"id": i, "p": i % 2} for i in range(4)], "one")
    append(connector, [{"id": i, "p": i % 2} for i in range(10, 14)], "two")
    return connector.metadata.load_table(NAME)


def append_with_pypaimon(table: TableHandle, values: Sequence[Mapping[str, Any]]) -> None:
    """Commit new rows as another engine would."""
    builder = table.native.table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(pa.Table.from_pylist(list(values), schema=schema_of(table)))
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def read(connector: Connector, name: TableName = NAME) -> list[dict[str, Any]]:
    """All rows, as pypaimon reads them, ordered by their text."""
    builder = connector.metadata.load_table(name).native.table.new_read_builder()
    found: list[dict[str, Any]] = (
        builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    )
    return sorted(found, key=repr)


def data_files(warehouse: Path) -> set[str]:
    """Paths of all data files, live or not, below the warehouse."""
    return {str(path.relative_to(warehouse)) for path in warehouse.rglob("*.parquet")}


def snapshot_ids(connector: Connector, name: TableName = NAME) -> list[int]:
    """Ids of all snapshots."""
    table = connector.metadata.load_table(name).native.table
    return stored_snapshots.snapshot_ids(table)


def overwrite(connector: Connector, number: int) -> None:
    """Replace all files by one with one row."""
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, f"op-{number}")
    files = connector.metadata.plan_files(table)
    fragments = connector.writes.drop_files(table, handle, files)
    fragments += store(handle, inserts(table, [{"id": number, "k": "x"}]))
    connector.writes.finish_merge(table, handle, fragments, {})
    connector.writes.release_guard(table, f"op-{number}")
