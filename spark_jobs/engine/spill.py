"""The executor half of materialisation: a task's rows into one parquet file, and out of it again.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.engine.tasks import task_key
from spark_jobs.errors import marked_errors

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
        with marked_errors():
            yield from self._stored(batches)

    def _stored(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name = f"{task_key()}.parquet"
        writer: pq.ParquetWriter | None = None
        row_count = byte_size = 0
        with ExitStack() as opened:
            for table in _tables(batches):
                if writer is None:
                    path = f"{self.folder}/{name}"
                    sink = opened.enter_context(self.filesystem.open_output_stream(path))
                    writer = opened.enter_context(_writer(sink, table.schema))
                writer.write_table(table)
                row_count += table.num_rows
                byte_size += table.get_total_buffer_size()
        if writer is not None:
            yield pa.RecordBatch.from_pydict(
                {"file": [name], "row_count": [row_count], "byte_size": [byte_size]}
            )


def _writer(sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    # Dictionaries take longer to build than what they save is worth in files read once.
    return pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False)


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together to row groups of a bounded size."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            # Not nbytes: it reads offsets, which Spark leaves out of empty nested arrays.
            size += batch.get_total_buffer_size()
        if size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(frozen=True, slots=True)
class SpillReader:
    """The function of ``mapInArrow``: numbers of tasks in (one column), rows of their files out.

    ``files`` has each task's paths; batches have ``columns``, in their order. Picklable.
    """

    filesystem: pafs.FileSystem
    files: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files of the tasks."""
        with marked_errors():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for path in self.files[number]:
                        yield from self._read(path)

    def _read(self, path: str) -> Iterator[pa.RecordBatch]:
        columns = list(self.columns)
        with self.filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
            for batch in file.iter_batches(columns=columns):
                yield batch.select(columns)
