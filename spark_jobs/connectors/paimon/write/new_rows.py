"""New rows of a table on their way to the buckets that they belong to. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.external_paths import ExternalPaths
from spark_jobs.connectors.paimon.format.partition_path import PartitionLayout
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.runs import codes_of, runs_of_equal


@dataclass(frozen=True, slots=True)
class NewFileLayout:
    """How new files of a table look, and where they go.

    ``root`` is the table's directory for data files; the schema of ``files`` has all columns in the
    table's order. With ``external``, new files go there, into directories that are named as those
    below ``table_path`` would be. ``bucketed``: new rows come with their bucket; those of other
    tables have bucket 0.
    """

    files: NewFiles
    root: str
    partitions: PartitionLayout
    table_path: str
    external: ExternalPaths | None
    bucketed: bool

    def outside(self, directory: str, number: int) -> str:
        """Where the file of this number goes that would belong into a directory of the table."""
        if self.external is None:
            return directory
        return self.external.root(number) + directory.removeprefix(self.table_path)

    def bucket_directory(self, place: BucketKey) -> str:
        """Where the data files of a bucket are."""
        relative = self.partitions.directory(place.partition)
        return "/".join(part for part in (self.root, relative, f"bucket-{place.bucket}") if part)


class NewRowsWriter:
    """Writes rows that come clustered by partition and bucket."""

    def __init__(self, layout: NewFileLayout, new_path: Callable[[str], str]) -> None:
        self._layout = layout
        self._keys = [key.name for key in layout.partitions.keys]
        self._writer: RollingWriter[BucketKey] = RollingWriter(
            layout.files, lambda place: new_path(layout.bucket_directory(place))
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows that have all columns of the table, in any order, and perhaps their bucket.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE, with the column.
        """
        schema = self._layout.files.schema
        columns = [conform(rows.column(field.name), field) for field in schema]
        table = pa.Table.from_arrays(columns, schema=schema)
        buckets = rows.column(BUCKET_COLUMN).to_numpy() if self._layout.bucketed else None
        keys = [codes_of(table.column(name)) for name in self._keys]
        keys += [] if buckets is None else [buckets]
        for start, end in runs_of_equal(table.num_rows, keys):
            values = tuple(table.column(name)[start].as_py() for name in self._keys)
            place = BucketKey(values, 0 if buckets is None else int(buckets[start]))
            self._writer.write(place, table.slice(start, end - start))

    def finish(self) -> list[tuple[BucketKey, WrittenFile]]:
        """Close what is open; all written files with their places."""
        return self._writer.finish()

    def close_quietly(self) -> None:
        """Give up the open file."""
        self._writer.close_quietly()
