"""Reads a single row of a data file for an error message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_groups import RowGroup, row_groups


def read_row(
    filesystem: pafs.FileSystem,
    path: str,
    position: int,
    columns: Sequence[str],
    mappings: Sequence[FieldMapping] | None = None,
) -> dict[str, Any]:
    """``columns`` of the row at ``position`` (from 0) as Python values.

    ``mappings`` are of a file that does not have the table's columns.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, also when the file has no such row.
    """
    with reading_file(path, filesystem):
        if mappings is None:
            return _read_row(filesystem, path, position, columns, ())
        wanted = [each for each in mappings if each.field.name in columns]
        recorded = recorded_columns(wanted)
        stored = [field.name for field in recorded]
        row = _read_row(filesystem, path, position, stored, recorded)
        return {each.field.name: _value(each, row) for each in wanted}


def _value(mapping: FieldMapping, row: Mapping[str, Any]) -> Any:
    if mapping.source is None:
        return mapping.missing(1)[0].as_py()
    stored = pa.array([row[mapping.source.name]], mapping.source.type)
    return mapping.values(stored)[0].as_py()


def _read_row(
    filesystem: pafs.FileSystem,
    path: str,
    position: int,
    columns: Sequence[str],
    recorded: Sequence[pa.Field],
) -> dict[str, Any]:
    with filesystem.open_input_file(path) as stream:
        start = 0
        for group in row_groups(path, stream, recorded):
            if position < start + group.row_count:
                return {name: _value_at(group, name, position - start) for name in columns}
            start += group.row_count
    raise pa.ArrowInvalid(f"it has {start} rows, none at position {position}")


def _value_at(group: RowGroup, name: str, position: int) -> Any:
    chunks = group.column(name).slice(position, 1).chunks
    (value,) = pa.concat_arrays([group.values(name, chunk) for chunk in chunks]).to_pylist()
    return value
