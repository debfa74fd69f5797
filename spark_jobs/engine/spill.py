"""The executor half of materialisation: a task's rows into one parquet file.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.engine.tasks import task_key

REPORT_SCHEMA = "file string, row_count bigint, byte_size bigint"
_ROW_GROUP_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SpillWriter:
    """The function of ``mapInArrow``: rows in, one report of the file written out. Picklable."""

    filesystem: pafs.FileSystem
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task.

        Yields:
            ``file`` (string, below ``folder``), ``row_count`` (bigint), ``byte_size`` (bigint:
            bytes as Arrow in memory). Nothing for a task without rows.
        """
        name = f"{task_key()}.parquet"
        writer: pq.ParquetWriter | None = None
        row_count = byte_size = 0
        for table in _tables(batches):
            if writer is None:
                sink = self.filesystem.open_output_stream(f"{self.folder}/{name}")
                writer = pq.ParquetWriter(sink, table.schema, compression="zstd")
            writer.write_table(table)
            row_count += table.num_rows
            byte_size += table.nbytes
        if writer is not None:
            writer.close()
            sink.close()
            yield pa.RecordBatch.from_pydict(
                {"file": [name], "row_count": [row_count], "byte_size": [byte_size]}
            )


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together to row groups of a bounded size."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(each.nbytes for each in waiting) >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
