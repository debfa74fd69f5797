"""The row id of rows without keys: the ordinal of the planned file and the position in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.file_changes import Positions

FILE_FIELD: Final = "file"
POSITION_FIELD: Final = "position"
# The most rows in a batch for the JVM.
_MOST_ROWS: Final = 16_384


def row_ids(ordinal: int, positions: Positions) -> pa.Array:
    """Row ids of rows in the file or unit ``ordinal``."""
    ordinals = pa.array(np.full(len(positions), ordinal, dtype=np.int32))
    return pa.StructArray.from_arrays(
        [ordinals, pa.array(positions, pa.int64())], [FILE_FIELD, POSITION_FIELD]
    )


def batches_with_row_ids(
    columns: Sequence[pa.ChunkedArray], ordinal: int, positions: Positions
) -> Iterator[pa.RecordBatch]:
    """Rows of the file or unit ``ordinal``: ``columns``, then the row id, named ``c0``, ``c1`` …"""
    arrays = [*columns, row_ids(ordinal, positions)]
    table = pa.Table.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
    yield from table.to_batches(max_chunksize=_MOST_ROWS)
