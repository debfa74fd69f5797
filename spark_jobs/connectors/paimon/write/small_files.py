"""Finds new files of a write that are too many for their size, and reads them again.

Each sink task appends the new versions of the rows that it updates, so that a statement on many
cores would leave as many files as tasks. Runs on executors, too.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.row_tracking import COLUMNS, stores_ids
from spark_jobs.connectors.paimon.write.file_layout import in_bucket
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.packing import filled
from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment

_MOST_FILES = 2
_ROW_ID = pa.struct([(FILE_FIELD, pa.int32()), (POSITION_FIELD, pa.int64())])


class SmallFile(NamedTuple):
    """A new file of a bucket, whose number within the partition is ``bucket``.

    ``stores_ids``: it has the ids of its rows, which are old.
    """

    path: str
    bucket: int
    stores_ids: bool


def small_files(fragments: Sequence[Fragment], target_file_size: int) -> list[list[int]]:
    """Groups of fragments whose new files fit into one file each.

    Only of buckets with more than twice as many new files as their size needs. Afterwards none has
    more, because two neighbouring groups do not fit into one file.
    """
    by_place: dict[str, list[int]] = defaultdict(list)
    for index, fragment in enumerate(fragments):
        added = fragment.document.get("added")
        if added is not None and fragment.document["removed"] is None:
            key = [added["partition"], added["bucket"], stores_ids(added["statistics"])]
            by_place[json.dumps(key)].append(index)
    groups: list[list[int]] = []
    for members in by_place.values():
        total = sum(fragments[index].bytes_added for index in members)
        if len(members) > _MOST_FILES * math.ceil(total / target_file_size):
            groups += filled(members, lambda index: fragments[index].bytes_added, target_file_size)
    return [group for group in groups if len(group) > 1]


def new_file(fragment: Fragment) -> SmallFile:
    """The file that a fragment adds."""
    added = fragment.document["added"]
    return SmallFile(added["path"], added["bucket"], stores_ids(added["statistics"]))


@dataclass(frozen=True, slots=True)
class SmallFilesReader:
    """Implements ``PartReader``: the rows of new files as INSERT rows. Picklable.

    ``columns`` are those of the table's files.
    """

    filesystem: pafs.FileSystem
    columns: pa.Schema

    def read(self, parts: Sequence[SmallFile]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            Change rows with the columns of the table, those with row ids if the files have them,
            and the bucket.
        """
        for part in parts:
            columns = COLUMNS.added_to(self.columns) if part.stores_ids else self.columns
            scan = FileScan(self.filesystem, list(columns), {})
            with reading_file(part.path):
                for _, table in scan.rows(part.path, np.zeros(0, np.int64)):
                    yield from _inserted(in_bucket(table, part.bucket)).to_batches()


def _inserted(table: pa.Table) -> pa.Table:
    count = table.num_rows
    change = {
        rows.OPERATION: pa.array(np.full(count, rows.INSERT, np.int8)),
        rows.CASE_NUMBER: pa.array(np.full(count, rows.NO_CASE, np.int32)),
        rows.ROW_ID: pa.nulls(count, _ROW_ID),
        rows.FROM_UPDATE: pa.array(np.ones(count, np.bool_)),
    }
    columns = [*change.values(), *table.columns]
    return pa.Table.from_arrays(columns, [*change, *table.column_names]).combine_chunks()
