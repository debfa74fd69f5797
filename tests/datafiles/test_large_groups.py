"""A row group that has more than 2 GiB of texts in a nested column: repeated ones take no room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite, rewrite_whole

pytestmark = pytest.mark.extended

_ROWS = 720_000
_PIECES = 8
_TEXTS = [letter * 3_200 for letter in "abcdefgh"]
_LISTS = pa.schema([("id", pa.int64()), ("texts", pa.list_(pa.string()))])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file with one row group, which has a list with one text in each row."""
    path = tmp_path_factory.mktemp("large") / "source.parquet"
    rows = _ROWS // _PIECES
    texts = pa.array(_TEXTS * (rows // len(_TEXTS)))
    piece = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), texts)
    columns = [pa.array(np.arange(_ROWS)), pa.chunked_array([piece] * _PIECES)]
    pq.write_table(pa.table(columns, schema=_LISTS), path, row_group_size=_ROWS)
    yield path
    path.unlink()


def lengths(path: Path) -> list[tuple[int, int]]:
    """The id of each row and the length of its texts."""
    found = []
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(10_000):
            counted = pc.binary_length(pc.list_element(batch.column("texts"), 0))
            found += zip(batch.column("id").to_pylist(), counted.to_pylist(), strict=True)
    return found


@pytest.mark.parametrize("apply", [rewrite, rewrite_whole])
def test_rows_change_and_go(apply: Callable[..., object], source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.parquet"
    positions = np.array([5, 9, 400_000], np.int64)
    new = ColumnChange(np.array([0, 2]), pa.array([["new"], ["newer"]], pa.list_(pa.string())))
    changes = FileChanges(positions, np.array([False, True, False]), {"texts": new})

    written = apply(pafs.LocalFileSystem(), str(source), str(target), changes, Compression())

    assert written is not None
    expected = {id_: 3_200 for id_ in range(_ROWS) if id_ != 9} | {5: 3, 400_000: 5}
    assert dict(lengths(target)) == expected
