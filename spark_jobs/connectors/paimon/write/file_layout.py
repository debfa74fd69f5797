"""Where the new files of a table belong, what they are like, and what sinks tell of them.

Runs on executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.buckets import BUCKET_COLUMN
from spark_jobs.connectors.paimon.format.locations import ExternalPaths
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS
from spark_jobs.connectors.paimon.format.vectors import WrittenIndex
from spark_jobs.connectors.shared.write.merge_sink import file_document, new_file
from spark_jobs.connectors.shared.write.new_rows import TaskFiles
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.formats.paimon.paths import PartitionLayout, bucket_directory
from spark_jobs.spi.writes import Fragment, beyond_years


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

    def of_old_rows(self) -> NewFileLayout:
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


def bucket_file_document(written: WrittenFile, place: BucketKey | None) -> dict[str, Any]:
    """The JSON data of a new file; ``place`` None: the place of the file or range it belongs to."""
    document = file_document(written, None if place is None else place.partition)
    return {**document, "bucket": None if place is None else place.bucket}


def new_file_fragment(written: WrittenFile, place: BucketKey) -> Fragment:
    """A file of new rows in ``place``."""
    return new_file(written, bucket_file_document(written, place))


def index_fragment(index: WrittenIndex) -> Fragment:
    """A new index file, and its deletion vectors."""
    return Fragment(
        {"index": index.to_json()},
        bytes_added=index.vector_bytes,
        deletion_vectors_added=len(index.vectors),
    )


class PaimonTaskFiles(TaskFiles):
    """Data files belong inside the table's directory or in external paths."""

    def __init__(self, layout: NewFileLayout, task_key: str) -> None:
        super().__init__(layout.files.filesystem, task_key)
        self._layout = layout

    def data_path(self, prefix: str, directory: str) -> str:
        """The path of a new data file; ``directory`` is inside the table, even if it is not."""
        return super().data_path(prefix, self._layout.outside(directory, self.number))
