"""The batches of pairs that a task joins are small, however long a row is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.engine.merge.located_tasks import LookupJoin
from spark_jobs.engine.merge.source_lookup import SourceLookup, make_lookup

_MOST_BYTES = 65 * 1024 * 1024
_TEXT = "x" * 100_000
_LONG = {
    "text": pa.array([_TEXT]),
    "binary": pa.array([_TEXT.encode()]),
    "list": pa.array([["x" * 1_000] * 100]),
    "map": pa.array([[(str(i), "x" * 1_000) for i in range(100)]], pa.map_("string", "string")),
    "struct": pa.array([{"a": [_TEXT], "b": 1}]),
}


def _joined(
    folder: Path, source: pa.Array, target: pa.Array, target_rows: int
) -> Iterator[pa.RecordBatch]:
    """The pairs of ``source`` and ``target``, whose rows all have the same key."""
    files = SourceLookup(pafs.LocalFileSystem(), str(folder), 1)
    keys = pa.array([1] * len(source))
    files.write(make_lookup([keys], pa.table({"c0": source})))
    row_ids = pa.array([{"file": 0}] * target_rows)
    columns = [pa.array([1] * target_rows), target, row_ids]

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays(columns, ["c0", "c1", "c2"])

    return LookupJoin(scan, (0,), files)([])


@pytest.mark.parametrize("kind", _LONG)
def test_a_long_row_of_the_source_has_many_pairs(kind: str, tmp_path: Path) -> None:
    short = pa.array(["y"] * 2_000)

    batches = list(_joined(tmp_path, _LONG[kind], short, 2_000))

    assert sum(each.num_rows for each in batches) == 2_000
    assert max(each.nbytes for each in batches) < _MOST_BYTES


@pytest.mark.parametrize("kind", _LONG)
def test_a_long_row_of_the_target_has_many_pairs(kind: str, tmp_path: Path) -> None:
    short = pa.array(["y"] * 2_000)

    batches = list(_joined(tmp_path, short, _LONG[kind], 1))

    assert sum(each.num_rows for each in batches) == 2_000
    assert max(each.nbytes for each in batches) < _MOST_BYTES


def test_short_rows_come_in_few_batches(tmp_path: Path) -> None:
    numbers = pa.array([{"a": [i], "b": None} for i in range(20_000)])

    batches = _joined(tmp_path, pa.array([None, None], pa.string()), numbers, 20_000)

    assert [each.num_rows for each in batches] == [16_384, 16_384, 7_232]
