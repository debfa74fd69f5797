"""Reads new files of a write that are too many for their size again. Runs on executors, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.iceberg.write.file_layout import NewFileLayout
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment


def place_of(added: Mapping[str, Any]) -> str:
    """What the rows of a new file have in common: the partition."""
    return json.dumps(added["partition"])


def new_path(fragment: Fragment) -> str:
    """The path of the file that a fragment adds."""
    path: str = fragment.document["added"]["path"]
    return path


@dataclass(frozen=True, slots=True)
class SmallFilesReader:
    """Implements ``PartReader``: the rows of new files, by path, as INSERT rows. Picklable.

    ``columns`` are those that statements can use; the others are NULL in new rows.
    """

    layout: NewFileLayout
    columns: tuple[str, ...]

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            Change rows with ``columns``, and those that the layout derives.
        """
        files = self.layout.files
        scan = FileScan(files.filesystem, [files.schema.field(name) for name in self.columns], {})
        for path in parts:
            with reading_file(path):
                for _, table in scan.rows(path, np.zeros(0, np.int64)):
                    for batch in table.combine_chunks().to_batches():
                        yield self._inserted(batch)

    def _inserted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        count, derived = batch.num_rows, self.layout.rows.derived
        placed = batch if derived is None else derived.added_to(batch)
        change = {
            rows.OPERATION: pa.array(np.full(count, rows.INSERT, np.int8)),
            rows.CASE_NUMBER: pa.array(np.zeros(count, np.int32)),
            rows.ROW_ID: pa.nulls(count),
            rows.FROM_UPDATE: pa.array(np.zeros(count, np.bool_)),
        }
        arrays = [*change.values(), *placed.columns]
        return pa.RecordBatch.from_arrays(arrays, [*change, *placed.schema.names])
