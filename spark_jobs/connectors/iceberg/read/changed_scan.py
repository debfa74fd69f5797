"""Reads rows of data files that came or went. Executors import this module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes, DeletedRows
from spark_jobs.connectors.iceberg.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.datafiles.parquet.damage import reading_file


class ChangedPart(NamedTuple):
    """A file with its deletes; ``before``: read only rows that these do not delete, but its do."""

    file: ScannedFile
    before: DataFileDeletes | None = None


@dataclass(frozen=True, slots=True)
class ChangedScan:
    """Implements ``PartReader`` for rows that came or went. Picklable."""

    scan: ArrowScan

    def read(self, parts: Sequence[ChangedPart]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task; yields as ``ArrowScan.read``."""
        deleted = DeletedRows(self.scan.filesystem)
        for part in parts:
            gone = deleted.positions(part.file.deletes)
            if part.before is not None:
                chosen = np.setdiff1d(gone, deleted.positions(part.before), assume_unique=True)
                if not len(chosen):
                    continue
                is_left_out = np.ones(part.file.deletes.row_count, dtype=bool)
                is_left_out[chosen] = False
                gone = np.flatnonzero(is_left_out)
            with reading_file(part.file.path, self.scan.filesystem):
                yield from self.scan.rows(part.file, gone, {})
