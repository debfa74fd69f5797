"""What is said of each row of changed files; without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from spark_jobs.engine.source.change_labels import ChangeLabels


def test_records_without_numbers_have_the_order_of_their_files() -> None:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        del batches
        for file, kind in ((0, 0), (1, 1), (1, 2)):
            columns = {"c0": [7], "c1": [file], "c2": [kind], "c3": [-1]}
            yield pa.RecordBatch.from_pydict(columns)

    signs, snapshots = np.ones(2, np.int32), np.array([5, 5], np.int64)
    labels = ChangeLabels(read, 1, signs, snapshots, is_log=True)
    rows = [row for batch in labels([]) for row in batch.to_pylist()]
    told = [tuple(row.values())[1:] for row in rows]
    assert told == [(0, 5, 0, -1), (1, 5, 1, -1), (2, 5, 1, -1)]
