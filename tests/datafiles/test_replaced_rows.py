"""New values in rows of a column, also of one whose chunks are nearly full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles import file_changes
from spark_jobs.datafiles.file_changes import replace_rows

_VALUES = {
    pa.string(): st.none() | st.text("ab", max_size=30),
    pa.bool_(): st.none() | st.booleans(),
    pa.list_(pa.string()): st.none() | st.lists(st.text("ab", max_size=9), max_size=3),
    pa.int64(): st.none() | st.integers(0, 9),
}


@pytest.mark.parametrize("kind", _VALUES, ids=str)
@pytest.mark.parametrize("most", [40, 2**31 - 1])
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_rows_get_their_values(kind: pa.DataType, most: int, data: st.DataObject) -> None:
    chunks = data.draw(st.lists(st.lists(_VALUES[kind], max_size=8), max_size=4))
    stored = [value for chunk in chunks for value in chunk]
    rows = sorted(data.draw(st.sets(st.sampled_from(range(len(stored)))))) if stored else []
    new = [data.draw(_VALUES[kind]) for _ in rows]
    column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_changes, "MOST_ARRAY_BYTES", most)
        replaced = replace_rows(column, np.array(rows, np.int64), pa.array(new, kind))

    expected = stored.copy()
    for row, value in zip(rows, new, strict=True):
        expected[row] = value
    assert replaced.to_pylist() == expected
    assert replaced.type == kind
    largest = max([most, *(len("".join(map(str, chunk))) for chunk in chunks)])
    assert all(
        len(chunk) == 1 or len("".join(map(str, chunk.to_pylist()))) <= largest
        for chunk in replaced.chunks
    )
