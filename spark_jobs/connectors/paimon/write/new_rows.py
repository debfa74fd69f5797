"""Writes new rows of a table into files of their buckets. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.external_paths import ExternalPaths
from spark_jobs.connectors.paimon.format.row_tracking import with_tracking
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.runs import codes_of, runs_of_equal
from spark_jobs.formats.paimon.paths import PartitionLayout, bucket_directory


@dataclass(frozen=True, slots=True)
class NewFileLayout:
    """The properties and directories of a table's new files.

    ``root`` is the table's directory for data files. The schema of ``files`` has all columns in the
    table's order. ``external`` paths, if any, get the new files, in directories with the same names
    as below ``table_path``. ``bucketed``: new rows come with their bucket; otherwise the bucket
    is 0.
    """

    files: NewFiles
    root: str
    partitions: PartitionLayout
    table_path: str
    external: ExternalPaths | None
    bucketed: bool

    def of_tracked_rows(self) -> NewFileLayout:
        """The layout of files that store the ids of their rows."""
        return replace(self, files=replace(self.files, schema=with_tracking(self.files.schema)))

    def outside(self, directory: str, number: int) -> str:
        """The directory for file ``number``, given its ``directory`` inside the table."""
        if self.external is None:
            return directory
        return self.external.root(number) + directory.removeprefix(self.table_path)

    def bucket_directory(self, place: BucketKey) -> str:
        """The directory for a bucket's data files, inside the table's directory."""
        relative = self.partitions.directory(place.partition)
        return bucket_directory(self.root, relative, place.bucket)


class NewRowsWriter:
    """Writes rows that arrive clustered by partition and bucket."""

    def __init__(self, layout: NewFileLayout, new_path: Callable[[str], str]) -> None:
        self._layout = layout
        self._keys = [key.name for key in layout.partitions.keys]
        self._writer: RollingWriter[BucketKey, WrittenFile] = RollingWriter(
            layout.files, lambda place: layout.files.open(new_path(layout.bucket_directory(place)))
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files."""
        return self._layout.files.schema

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows with all columns of the table, in any order, and their bucket if ``bucketed``.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
        """
        schema = self._layout.files.schema
        columns = [conform(_array(rows.column(field.name)), field) for field in schema]
        table = pa.Table.from_arrays(columns, schema=schema)
        buckets = rows.column(BUCKET_COLUMN).to_numpy() if self._layout.bucketed else None
        keys = [codes_of(table.column(name)) for name in self._keys]
        keys += [] if buckets is None else [buckets]
        for start, end in runs_of_equal(table.num_rows, keys):
            values = tuple(table.column(name)[start].as_py() for name in self._keys)
            place = BucketKey(values, 0 if buckets is None else int(buckets[start]))
            self._writer.write(place, table.slice(start, end - start))

    def finish(self) -> list[tuple[BucketKey, WrittenFile]]:
        """Close the open file and return all written files with their partition and bucket."""
        return self._writer.finish()

    def close_quietly(self) -> None:
        """Abandon the open file."""
        self._writer.close_quietly()


def in_bucket(rows: pa.Table, bucket: int) -> pa.Table:
    """``rows`` of one bucket, as ``NewRowsWriter`` takes them."""
    return rows.append_column(BUCKET_COLUMN, pa.array(np.full(rows.num_rows, bucket, np.int32)))


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
