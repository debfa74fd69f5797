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
    """Implements ``PartReader``: the rows of new files, by path. Picklable.

    ``columns`` are those that statements can use; the others are NULL in new rows.
    """

    layout: NewFileLayout
    columns: tuple[str, ...]

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read files, one row group after another.

        Yields:
            ``columns``, and those that the layout derives.
        """
        files, derived = self.layout.files, self.layout.rows.derived
        scan = FileScan(files.filesystem, [files.schema.field(name) for name in self.columns], {})
        for path in parts:
            with reading_file(path):
                for _, table in scan.rows(path, np.zeros(0, np.int64)):
                    for batch in table.combine_chunks().to_batches():
                        yield batch if derived is None else derived.added_to(batch)
