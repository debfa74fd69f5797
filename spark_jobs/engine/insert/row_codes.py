"""Numbers that tell the distinct rows of columns apart. Imported by executors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def row_codes(columns: Sequence[pa.DictionaryArray], row_count: int) -> npt.NDArray[np.int64]:
    """A number for each row, from 0 without gaps: equal rows of ``columns`` have the same one.

    The columns must be encoded such that NULL has an index, too.
    """
    codes = np.zeros(row_count, dtype=np.int64)
    for each in columns:
        pairs = codes * (len(each.dictionary) + 1) + each.indices.to_numpy()
        codes = np.unique(pairs, return_inverse=True)[1]
    return codes
