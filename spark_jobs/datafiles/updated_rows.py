"""The new versions of a file's updated rows, for formats that append them. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.field_mapping import FieldMapping, require_no_null
from spark_jobs.datafiles.file_changes import FileChanges, Positions, replace_rows
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file


def updated_rows(
    filesystem: pafs.FileSystem,
    path: str,
    changes: FileChanges,
    columns: pa.Schema,
    mappings: Sequence[FieldMapping] | None = None,
) -> Iterator[pa.Table]:
    """The rows that ``changes`` update in the file at ``path``, whole and in the file's order.

    Only these rows are read, and only ``columns`` that do not get a new value in each of them.
    ``mappings`` are of a file that does not have the table's columns.

    Yields:
        ``columns``: one table for each row group with updated rows.

    Raises:
        DataError: NOT_NULL_VIOLATION: an old value is NULL in a column that must not be.
        NotSupportedError: the file has INT96 timestamps that cannot be read rightly.
        CatalogError: DATA_FILE_UNREADABLE, also if a position is not in the file.
    """
    updated = np.flatnonzero(~changes.deleted)
    if not len(updated):
        return
    assigned = {name for name, each in changes.columns.items() if len(each.rows) == len(updated)}
    read = [field.with_nullable(nullable=True) for field in columns if field.name not in assigned]
    old = _old_rows(filesystem, path, changes.positions[updated], read, mappings)
    start = 0
    for count, table in old:
        number = updated[start : start + count]
        arrays = [_column(path, field, table, changes, number) for field in columns]
        yield pa.Table.from_arrays(arrays, schema=columns)
        start += count


def _old_rows(
    filesystem: pafs.FileSystem,
    path: str,
    positions: Positions,
    fields: Sequence[pa.Field],
    mappings: Sequence[FieldMapping] | None,
) -> Iterator[tuple[int, pa.Table]]:
    """Row counts and ``fields`` of the rows at ``positions``, in order."""
    if not fields:
        yield len(positions), pa.table({})
        return
    by_name = None if mappings is None else {each.field.name: each for each in mappings}
    with reading_file(path, filesystem):
        scan = FileScan(filesystem, fields, {}, by_name)
        for found, table in scan.rows_at(path, positions):
            yield len(found), table


def _column(
    path: str, field: pa.Field, old: pa.Table, changes: FileChanges, numbers: Positions
) -> pa.ChunkedArray:
    """One column of the updated rows ``numbers``, which are indices into all changed rows."""
    change = changes.columns.get(field.name)
    if change is not None:
        first, last = np.searchsorted(change.rows, [numbers[0], numbers[-1] + 1])
        new, rows = change.values[first:last], np.searchsorted(numbers, change.rows[first:last])
        if field.name not in old.column_names:
            return pa.chunked_array([new])
        values = replace_rows(old.column(field.name), rows, new)
    else:
        values = old.column(field.name)
    require_no_null(field, values, path)
    return values
