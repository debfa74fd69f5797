"""Reading a single row of a parquet file, to word an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq


def read_row(
    filesystem: pafs.FileSystem, path: str, position: int, columns: Sequence[str]
) -> dict[str, Any]:
    """``columns`` of the row at ``position`` (from 0) as Python values."""
    with pq.ParquetFile(filesystem.open_input_file(path)) as file:
        start = 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if position < start + rows:
                group = file.read_row_group(number, columns=list(columns), use_threads=False)
                (row,) = group.slice(position - start, 1).to_pylist()
                return {name: row[name] for name in columns}
            start += rows
    raise IndexError(f"{path} has {start} rows, none at position {position}")
