"""The executor half of scans with pyarrow: files in, live or changed rows out.

Executors import this module, so nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes, DeletedRows
from spark_jobs.connectors.iceberg.format.file_columns import NameMapping, file_mappings
from spark_jobs.connectors.iceberg.format.row_lineage import with_ids
from spark_jobs.connectors.iceberg.format.schema import IcebergField, arrow_field
from spark_jobs.connectors.iceberg.format.stored_columns import stored_columns
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_id import batches_with_row_ids


class ScannedFile(NamedTuple):
    """A data file, its deletes, and the values of its partition fields by column id.

    ``first_row_id``: of its first row, where the ids of rows are read.
    """

    path: str
    deletes: DataFileDeletes
    constants: Mapping[int, pa.Scalar]
    first_row_id: int | None = None


@dataclass(frozen=True, slots=True)
class ArrowScan:
    """Implements ``PartReader`` for the live rows of data files. Picklable.

    ``fields`` are the columns to read, ``names`` the table's name mapping. Rows are left out unless
    they have, in each column of ``keys``, one of its values; ``key_fields`` are these columns.
    """

    filesystem: pafs.FileSystem
    fields: tuple[IcebergField, ...]
    key_fields: tuple[IcebergField, ...]
    names: NameMapping | None
    keys: Mapping[str, pa.Array]

    def read(self, parts: Sequence[ScannedFile]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task.

        Yields:
            The columns of ``fields`` in order, then the row id, named ``c0``, ``c1`` ….
        """
        probes = {name: KeyProbe(values) for name, values in self.keys.items()}
        deleted = DeletedRows(self.filesystem)
        for file in parts:
            gone = deleted.positions(file.deletes)
            with reading_file(file.path, self.filesystem):
                yield from self.rows(file, gone, probes)

    def rows(
        self, file: ScannedFile, deleted: Positions, probes: Mapping[str, KeyProbe]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as ``read`` yields them, without those at ``deleted``."""
        with self.filesystem.open_input_file(file.path) as stream:
            found = stored_columns(file.path, stream)
        wanted = dict.fromkeys((*self.fields, *self.key_fields))
        mappings = with_ids(
            file_mappings(wanted, found, self.names, file.constants), file.first_row_id
        )
        fields = [arrow_field(each).with_nullable(nullable=True) for each in self.fields]
        by_name = {each.field.name: each for each in mappings}
        scan = FileScan(self.filesystem, fields, probes, by_name)
        for positions, columns in scan.rows(file.path, deleted, file.deletes.row_count):
            yield from batches_with_row_ids(columns.columns, file.deletes.ordinal, positions)


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
