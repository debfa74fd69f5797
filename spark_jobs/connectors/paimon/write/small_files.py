"""Reads new files of a write that are too many for their size again.

Each sink task appends the new versions of the rows that it updates, or new rows as it computes
them, so that a statement on many cores would leave as many files as tasks. Runs on executors, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS, stores_ids
from spark_jobs.connectors.paimon.write.file_layout import in_bucket
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.spi.writes import Fragment


class SmallFile(NamedTuple):
    """A new file of a bucket, whose number within the partition is ``bucket``.

    ``stores_ids``: it has the ids of its rows, which are old.
    """

    path: str
    bucket: int
    stores_ids: bool


def place_of(added: Mapping[str, Any]) -> str:
    """What the rows of a new file have in common: bucket, and whether they are old ones."""
    return json.dumps([added["partition"], added["bucket"], stores_ids(added["statistics"])])


def new_file(fragment: Fragment) -> SmallFile:
    """The file that a fragment adds."""
    added = fragment.document["added"]
    return SmallFile(added["path"], added["bucket"], stores_ids(added["statistics"]))


@dataclass(frozen=True, slots=True)
class SmallFilesReader:
    """Implements ``PartReader``: the rows of new files. Picklable.

    ``columns`` are those of the table's files.
    """

    filesystem: pafs.FileSystem
    columns: pa.Schema

    def read(self, parts: Sequence[SmallFile]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            The columns of the table, those with row ids if the files have them, and the bucket.
        """
        for part in parts:
            columns = COLUMNS.added_to(self.columns) if part.stores_ids else self.columns
            scan = FileScan(self.filesystem, list(columns), {})
            with reading_file(part.path):
                for _, table in scan.rows(part.path, np.zeros(0, np.int64)):
                    yield from in_bucket(table, part.bucket).combine_chunks().to_batches()
