"""Rows into a folder table without the engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.support.folder_connector import storage


def append(
    spark: SparkSession, folder: Path, rows: Sequence[dict[str, Any]], row_group_size: int
) -> None:
    """One commit that adds one file."""
    columns, _ = storage.read_schema(folder)
    data = pa.Table.from_pylist(list(rows), schema=storage.arrow_schema(spark, columns))
    latest = storage.latest_snapshot(folder) or 0
    name = f"{latest + 1:04d}-{os.urandom(4).hex()}.parquet"
    pq.write_table(data, folder / name, row_group_size=row_group_size)
    manifest = storage.read_manifest(folder, latest or None)
    storage.publish(folder, latest + 1, [*manifest["files"], name], {})
