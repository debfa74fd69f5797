"""What a folder table is on disk: ``schema.json``, parquet files, ``manifest-<snapshot>.json``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_jobs import arrow_types
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.tables import Column, ColumnRange, PlannedFile

_LENGTH = re.compile(r"\b(var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


def write_schema(folder: Path, spec: CreateTableSpec) -> None:
    """Make the table's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = [asdict(Column(each.name, each.type, each.nullable)) for each in spec.columns]
    document = {"columns": columns, "partition_keys": list(spec.partition_keys)}
    (folder / "schema.json").write_text(json.dumps(document))


def read_schema(folder: Path) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The table's columns and partition keys."""
    document = json.loads((folder / "schema.json").read_text())
    columns = tuple(Column(**column) for column in document["columns"])
    return columns, tuple(document["partition_keys"])


def ddl(columns: Sequence[Column]) -> str:
    """The columns as Spark reads them from files, which know no lengths of strings."""
    return ", ".join(
        f"`{each.name}` {_LENGTH.sub('string', each.type)}{'' if each.nullable else ' NOT NULL'}"
        for each in columns
    )


def arrow_schema(spark: SparkSession, columns: Sequence[Column]) -> pa.Schema:
    """The columns as pyarrow writes them."""
    schema = spark.createDataFrame([], ddl(columns)).schema
    return arrow_types.arrow_schema(schema)


def latest_snapshot(folder: Path) -> int | None:
    """The highest snapshot id; None for a table without a snapshot."""
    ids = [int(path.stem.split("-")[1]) for path in folder.glob("manifest-*.json")]
    return max(ids, default=None)


def read_manifest(folder: Path, snapshot_id: int | None) -> dict[str, Any]:
    """``files`` (names) and ``properties`` of a snapshot."""
    if snapshot_id is None:
        return {"files": [], "properties": {}}
    document: dict[str, Any] = json.loads((folder / f"manifest-{snapshot_id}.json").read_text())
    return document


def publish(
    folder: Path, snapshot_id: int, files: Sequence[str], properties: Mapping[str, str]
) -> None:
    """Make a snapshot: a hard link that fails where another writer was first.

    Raises:
        CommitError: COMMIT_CONFLICT.
    """
    temporary = folder / f"{os.urandom(8).hex()}.tmp"
    temporary.write_text(json.dumps({"files": list(files), "properties": dict(properties)}))
    try:
        os.link(temporary, folder / f"manifest-{snapshot_id}.json")
    except FileExistsError:
        raise CommitError(
            ErrorCode.COMMIT_CONFLICT, f"snapshot {snapshot_id} was made by another writer"
        ) from None
    finally:
        temporary.unlink()


def planned_file(ordinal: int, path: Path, partition_keys: Sequence[str]) -> PlannedFile:
    """A data file with exact bounds of its flat columns."""
    data = pq.ParquetFile(path).read()
    ranges = {name: _range(data[name]) for name in data.column_names}
    partition = {key: data[key][0].as_py() for key in partition_keys}
    return PlannedFile(ordinal, str(path), partition, data.num_rows, path.stat().st_size, ranges)


def _range(column: pa.ChunkedArray) -> ColumnRange:
    if pa.types.is_nested(column.type) or column.null_count == len(column):
        return ColumnRange(None, None, column.null_count)
    bounds = pc.min_max(column).as_py()
    return ColumnRange(bounds["min"], bounds["max"], column.null_count)
