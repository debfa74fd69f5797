"""The row id of rows without keys: the ordinal of the planned file and the position in it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.file_changes import Positions

FILE_FIELD: Final = "file"
POSITION_FIELD: Final = "position"


def row_ids(ordinal: int, positions: Positions) -> pa.Array:
    """Row ids of rows in the file or unit ``ordinal``."""
    ordinals = pa.array(np.full(len(positions), ordinal, dtype=np.int32))
    return pa.StructArray.from_arrays(
        [ordinals, pa.array(positions, pa.int64())], [FILE_FIELD, POSITION_FIELD]
    )
