"""A row group at once, also one whose nested columns fit into no array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

_STEP_ROWS: Final = 4096


def read_group(file: pq.ParquetFile, number: int, leaves: Sequence[int] | None = None) -> pa.Table:
    """The columns with ``leaves`` of a row group, or all of them, as decoded.

    pyarrow splits a column of texts into arrays of up to 2 GiB, but not a nested one: that is
    decoded step by step, and has as many chunks.

    Raises:
        pa.ArrowNotImplementedError: pyarrow does not decode one of the columns.
    """
    # By index: in a column name, pyarrow takes dots for paths to nested fields.
    reader = file.reader
    try:
        return reader.read_row_group(number, column_indices=leaves, use_threads=False)
    except pa.ArrowNotImplementedError:
        # No footer tells how large a column is once it is decoded. A type that pyarrow does not
        # have fails here once more.
        steps = reader.iter_batches(
            _STEP_ROWS, row_groups=[number], column_indices=leaves, use_threads=False
        )
        return pa.Table.from_batches(steps)
