"""Where the new files of a table belong, and what they are like. Runs on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.external_paths import ExternalPaths
from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.formats.paimon.paths import PartitionLayout, bucket_directory
from spark_jobs.spi.writes import beyond_years


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
        return replace(self, files=replace(self.files, schema=COLUMNS.added_to(self.files.schema)))

    def outside(self, directory: str, number: int) -> str:
        """The directory for file ``number``, given its ``directory`` inside the table."""
        if self.external is None:
            return directory
        return self.external.root(number) + directory.removeprefix(self.table_path)

    def place_columns(self, rows: pa.RecordBatch | pa.Table, stored: pa.Table) -> list[Any]:
        """The partition columns, and the bucket."""
        partition = [stored.column(key.name) for key in self.partitions.keys]
        return [*partition, rows.column(BUCKET_COLUMN)] if self.bucketed else partition

    def place(self, values: Sequence[pa.Scalar]) -> BucketKey:
        """The bucket of rows with these values.

        Raises:
            DataError: VALUE_NOT_STORABLE, a day that Python does not have.
        """
        try:
            python_values = [each.as_py() for each in values]
        except (ValueError, OverflowError):
            raise beyond_years(key.name for key in self.partitions.keys) from None
        bucket = python_values.pop() if self.bucketed else 0
        return BucketKey(tuple(python_values), bucket)

    def folder(self, place: BucketKey) -> str:
        """The directory for a bucket's data files, inside the table's directory."""
        relative = self.partitions.directory(place.partition)
        return bucket_directory(self.root, relative, place.bucket)


def in_bucket(rows: pa.Table, bucket: int) -> pa.Table:
    """``rows`` of one bucket, as ``NewRowsWriter`` takes them."""
    return rows.append_column(BUCKET_COLUMN, pa.array(np.full(rows.num_rows, bucket, np.int32)))
