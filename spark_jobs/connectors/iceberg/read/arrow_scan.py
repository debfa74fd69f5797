"""The executor half of a scan with pyarrow: files in, live rows out.

Executors import this module, so nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

    @property
    def row_count(self) -> int:
        """The number of rows, also of deleted ones."""
        return self.deletes.row_count


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
        deleted_rows = self.deleted_rows()
        for file in parts:
            yield from self.rows(file, deleted_rows(file), probes)

    def deleted_rows(self) -> Callable[[ScannedFile], Positions]:
        """What finds the deleted rows of a file, and keeps deletes that several files share."""
        rows = DeletedRows(self.filesystem)
        return lambda file: rows.positions(file.deletes)

    def rows(
        self, file: ScannedFile, deleted: Positions, probes: Mapping[str, KeyProbe]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as ``read`` yields them, without those at ``deleted``."""
        wanted = dict.fromkeys((*self.fields, *self.key_fields))
        fields = [arrow_field(each).with_nullable(nullable=True) for each in self.fields]
        with reading_file(file.path, self.filesystem):
            with self.filesystem.open_input_file(file.path) as stream:
                found = stored_columns(file.path, stream)
            mappings = file_mappings(wanted, found, self.names, file.constants)
            by_name = {each.field.name: each for each in with_ids(mappings, file.first_row_id)}
            scan = FileScan(self.filesystem, fields, probes, by_name)
            for positions, columns in scan.rows(file.path, deleted, file.row_count):
                yield from batches_with_row_ids(columns.columns, file.deletes.ordinal, positions)
