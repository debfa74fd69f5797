"""New rows on their way into new data files, one open file at a time. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.external_paths import ExternalPaths
from spark_jobs.connectors.paimon.format.partition_path import PartitionLayout
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.options import Compression, ParquetOptions
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter, WrittenFile

_ROW_GROUP_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NewFileLayout:
    """How new files of a table look.

    ``root`` is the table's directory for data files in ``filesystem``; ``schema`` has all columns
    in the table's order; ``target_file_size`` is in bytes. With ``external``, new files go there,
    into directories that are named as those below ``table_path`` would be. ``bucketed``: new rows
    come with their bucket; those of other tables have bucket 0.
    """

    filesystem: pafs.FileSystem
    root: str
    schema: pa.Schema
    partitions: PartitionLayout
    target_file_size: int
    compression: Compression
    table_path: str
    external: ExternalPaths | None
    bucketed: bool

    @property
    def row_group_bytes(self) -> int:
        """Arrow bytes that make a row group."""
        return min(_ROW_GROUP_BYTES, self.target_file_size)

    def outside(self, directory: str, number: int) -> str:
        """Where the file of this number goes that would belong into a directory of the table."""
        if self.external is None:
            return directory
        return self.external.root(number) + directory.removeprefix(self.table_path)

    def bucket_directory(self, place: BucketKey) -> str:
        """Where the data files of a bucket are."""
        relative = self.partitions.directory(place.partition)
        return "/".join(part for part in (self.root, relative, f"bucket-{place.bucket}") if part)


@dataclass(slots=True)
class _Pending:
    """Rows of the open partition that are not yet a row group."""

    tables: list[pa.Table] = field(default_factory=list)
    size: int = 0

    def add(self, table: pa.Table) -> None:
        self.tables.append(table)
        self.size += table.nbytes

    def take(self) -> pa.Table:
        table = pa.concat_tables(self.tables)
        self.tables, self.size = [], 0
        return table


class NewRowsWriter:
    """Writes rows that come clustered by partition and bucket; files roll at the target size."""

    def __init__(self, layout: NewFileLayout, new_path: Callable[[str], str]) -> None:
        self._layout = layout
        self._new_path = new_path
        self._keys = [key.name for key in layout.partitions.keys]
        self._place = BucketKey((), 0)
        self._pending = _Pending()
        self._writer: ParquetFileWriter | None = None
        self._written: list[tuple[BucketKey, WrittenFile]] = []

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows that have all columns of the table, in any order, and perhaps their bucket.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE, with the column.
        """
        schema = self._layout.schema
        columns = [conform(rows.column(field.name), field) for field in schema]
        table = pa.Table.from_arrays(columns, schema=schema)
        buckets = self._buckets(rows)
        for start, end in _runs(table, self._keys, buckets):
            self._write_run(table.slice(start, end - start), int(buckets[start]))

    def finish(self) -> list[tuple[BucketKey, WrittenFile]]:
        """Close what is open; all written files with their places."""
        self._close_file()
        return self._written

    def close_quietly(self) -> None:
        """Give up the open file."""
        if self._writer is not None:
            self._writer.close_quietly()

    def _buckets(self, rows: pa.RecordBatch) -> npt.NDArray[np.int32]:
        if self._layout.bucketed:
            buckets: npt.NDArray[np.int32] = rows.column(BUCKET_COLUMN).to_numpy()
            return buckets
        return np.zeros(rows.num_rows, dtype=np.int32)

    def _write_run(self, run: pa.Table, bucket: int) -> None:
        place = BucketKey(tuple(run.column(name)[0].as_py() for name in self._keys), bucket)
        if self._place != place:
            self._close_file()
            self._place = place
        self._pending.add(run)
        if self._pending.size >= self._layout.row_group_bytes:
            self._write_row_group()

    def _write_row_group(self) -> None:
        if self._writer is None:
            path = self._new_path(self._layout.bucket_directory(self._place))
            self._writer = ParquetFileWriter(
                self._layout.filesystem,
                path,
                self._layout.schema,
                ParquetOptions.for_new_file(),
                self._layout.compression,
            )
        self._writer.write_row_group(self._pending.take())
        if self._writer.bytes_written >= self._layout.target_file_size:
            self._finish_file()

    def _close_file(self) -> None:
        if self._pending.tables:
            self._write_row_group()
        if self._writer is not None:
            self._finish_file()

    def _finish_file(self) -> None:
        if self._writer is not None:
            self._written.append((self._place, self._writer.finish()))
            self._writer = None


def _runs(
    table: pa.Table, keys: Sequence[str], buckets: npt.NDArray[np.int32]
) -> Iterator[tuple[int, int]]:
    """Start and end of each run of rows of one bucket and equal ``keys``; NULL equals NULL."""
    if table.num_rows == 0:
        return
    changes: npt.NDArray[np.bool_] = buckets[1:] != buckets[:-1]
    for key in keys:
        column = table.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        codes = column.indices.to_numpy()
        changes |= codes[1:] != codes[:-1]
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), table.num_rows]
    yield from pairwise(bounds)
