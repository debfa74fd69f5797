"""Rows and change rows of tables with a primary key, made without Spark or the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.keyed.file_columns import POSITION
from spark_jobs.connectors.paimon.read.planning import run_files, section_reader
from spark_jobs.connectors.paimon.write.bucket_choice import bucket_column
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import PlannedFile, TableHandle
from tests.support.paimon_tables import change_rows


@dataclass(frozen=True)
class KeyedChange:
    """A change row: ``row`` has all columns, as they travel, and ``file``, ``position`` if known.

    ``case``: the number of its clause.
    """

    operation: int
    row: dict[str, Any]
    case: int = 0


def new_row(row: dict[str, Any]) -> KeyedChange:
    """An INSERT."""
    return KeyedChange(rows.INSERT, row)


def keyed_rows(
    connector: Connector, table: TableHandle, files: Iterable[PlannedFile]
) -> list[dict[str, Any]]:
    """The rows of these units, with ``file`` and ``position``."""
    reader = section_reader(table.native, table.native.keyed, connector.storage.filesystem)
    names = list(table.column_names)
    found = []
    for file in files:
        for window in reader.rows(run_files(table.native, file.ordinal), names):
            for row in window.select([*names, POSITION]).to_pylist():
                position = row.pop(POSITION)
                found.append({**row, "file": file.ordinal, "position": position})
    return found


def keyed_batches(table: TableHandle, changes: Sequence[KeyedChange]) -> list[pa.RecordBatch]:
    """Change rows by partition, bucket and key, as a sink task gets them."""
    derived = bucket_column(table.native, pafs.LocalFileSystem())
    assert derived is not None
    buckets = derived.function
    batches = [change_rows(table, each.operation, [each.row], each.case) for each in changes]
    placed = [(buckets(batch)[0], batch) for batch in batches]
    keys = [*table.partition_keys, *table.native.keyed.key]

    def order(index: int) -> tuple[Any, ...]:
        row = changes[index].row
        place = [row[name] for name in table.partition_keys]
        key = [row[name] for name in keys]
        is_insert = changes[index].operation == rows.INSERT
        return (*place, placed[index][0][0].as_py(), *key, is_insert)

    found = [placed[index] for index in sorted(range(len(changes)), key=order)]
    return [batch.append_column(BUCKET_COLUMN, bucket.cast(pa.int32())) for bucket, batch in found]
