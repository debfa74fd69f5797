"""Avro files for tests, and their rows as a scan reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.errors import CatalogError, ErrorCode


def write(
    path: Path,
    types: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    codec: str = "zstandard",
    block_bytes: int = 16_000,
) -> str:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec, sync_interval=block_bytes)
    return str(path)


def scan(path: str, fields: Sequence[pa.Field], rows: int | None = None) -> list[dict[str, Any]]:
    """All rows of a file whose columns are the table's."""
    mappings = {field.name: FieldMapping(field, field, parts(field.type)) for field in fields}
    nothing = np.zeros(0, dtype=np.int64)
    with reading_file(path):
        found = list(
            FileScan(pafs.LocalFileSystem(), fields, {}, mappings).rows(path, nothing, rows)
        )
    return [each for _, table in found for each in table.to_pylist()]


def parts(kind: pa.DataType) -> tuple[FieldMapping, ...]:
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    else:
        inner = [kind.field(i) for i in range(kind.num_fields)]
    return tuple(FieldMapping(field, field, parts(field.type)) for field in inner)


def refused(path: str, field: pa.Field, rows: int | None = None) -> str:
    with pytest.raises(CatalogError) as raised:
        scan(path, [field], rows)
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert path in raised.value.message
    return raised.value.message


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(name: str, **fields: Any) -> dict[str, Any]:
    named = [{"name": key, "type": kind} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": named}


def long(kind: str) -> dict[str, str]:
    return {"type": "long", "logicalType": kind}
