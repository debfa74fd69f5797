"""Reads a single row of a parquet file for an error message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.damage import reading_file


def read_row(
    filesystem: pafs.FileSystem,
    path: str,
    position: int,
    columns: Sequence[str],
    mappings: Sequence[FieldMapping] | None = None,
) -> dict[str, Any]:
    """``columns`` of the row at ``position`` (from 0) as Python values.

    ``mappings`` are of a file that was written with an older schema.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, also when the file has no such row.
    """
    with reading_file(path):
        if mappings is None:
            return _read_row(filesystem, path, position, columns)
        wanted = [each for each in mappings if each.field.name in columns]
        stored = [each.source.name for each in wanted if each.source is not None]
        row = _read_row(filesystem, path, position, stored)
        return {each.field.name: _value(each, row) for each in wanted}


def _value(mapping: FieldMapping, row: Mapping[str, Any]) -> Any:
    if mapping.source is None:
        return None
    stored = pa.array([row[mapping.source.name]], mapping.source.type)
    return mapping.values(stored)[0].as_py()


def _read_row(
    filesystem: pafs.FileSystem, path: str, position: int, columns: Sequence[str]
) -> dict[str, Any]:
    with pq.ParquetFile(filesystem.open_input_file(path)) as file:
        start = 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if position < start + rows:
                group = file.read_row_group(number, columns=list(columns), use_threads=False)
                if not set(columns) <= set(group.column_names):
                    raise pa.ArrowInvalid(f"it lacks one of the columns {', '.join(columns)}")
                (row,) = group.slice(position - start, 1).to_pylist()
                return {name: row[name] for name in columns}
            start += rows
    raise pa.ArrowInvalid(f"it has {start} rows, none at position {position}")
