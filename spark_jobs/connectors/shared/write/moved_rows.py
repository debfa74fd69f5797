"""New rows that are old ones in another place, in tables whose rows have ids. Runs on executors.

An UPDATE that moves a row to another partition, and a repacked file, hand rows to the sink as new
ones; they keep their ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from spark_jobs.connectors.shared.write.new_rows import NewRowsWriter
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.runs import distinct
from spark_jobs.datafiles.tracked_rows import TrackedColumns
from spark_jobs.spi.rows import MOVED_FROM


class FileIds(NamedTuple):
    """A data file, and how the ids of its rows are found in it."""

    path: str
    mapping: FieldMapping


class Divided(NamedTuple):
    """INSERT rows: the ``new`` ones, and the ``old`` ones with ids and without numbers."""

    new: pa.RecordBatch
    old: pa.RecordBatch


class MovedRows:
    """Tells moved rows from new ones; ``ids_of`` a file by its ordinal."""

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        columns: TrackedColumns,
        ids_of: Callable[[int], FileIds],
    ) -> None:
        self._filesystem = filesystem
        self._columns = columns
        self._ids_of = ids_of

    def store(
        self, batch: pa.RecordBatch, new_rows: NewRowsWriter[Any], old_rows: NewRowsWriter[Any]
    ) -> None:
        """Write the rows of ``batch``, old ones to files of their own; raises as ``divided``."""
        new, old = self.divided(batch)
        if new.num_rows:
            new_rows.write(new)
        if old.num_rows:
            old_rows.write(old)

    def divided(self, batch: pa.RecordBatch) -> Divided:
        """The rows of ``batch``, in its order.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: an old row is not in its file.
        """
        names = [each.name for each in self._columns]
        if names[0] in batch.schema.names:
            return Divided(batch.slice(0, 0), batch)
        if MOVED_FROM not in batch.schema.names:
            return Divided(batch, batch.slice(0, 0))
        is_moved = batch.column(MOVED_FROM).is_valid()
        moved = batch.filter(is_moved)
        if not moved.num_rows:
            return Divided(batch, moved)
        ids = self._ids(moved.column(MOVED_FROM))
        columns = [*moved.columns, ids, pa.nulls(len(ids), pa.int64())]
        old = pa.RecordBatch.from_arrays(columns, [*moved.schema.names, *names])
        return Divided(batch.filter(pc.invert(is_moved)), old)

    def _ids(self, moved_from: pa.StructArray) -> pa.Array:
        files = pc.struct_field(moved_from, FILE_FIELD).to_numpy(zero_copy_only=False)
        positions = pc.struct_field(moved_from, POSITION_FIELD).to_numpy(zero_copy_only=False)
        ids = np.zeros(len(files), np.int64)
        for ordinal in distinct(files):
            rows = np.flatnonzero(files == ordinal)
            wanted, place = np.unique(positions[rows], return_inverse=True)
            ids[rows] = self._ids_in(self._ids_of(int(ordinal)), wanted)[place]
        return pa.array(ids)

    def _ids_in(self, file: FileIds, positions: Positions) -> Positions:
        """The ids of the rows at ``positions`` (ascending)."""
        mapping, name = file.mapping, file.mapping.field.name
        if mapping.source is None:
            missing = pa.chunked_array([mapping.missing(len(positions))])
            return np.asarray(mapping.filled(missing, positions), np.int64)
        scan = FileScan(self._filesystem, [mapping.field], {}, {name: mapping})
        with reading_file(file.path):
            id_columns = [table.column(name) for _, table in scan.rows_at(file.path, positions)]
            if any(each.null_count for each in id_columns):
                raise pa.ArrowInvalid("it lacks the ids of some rows")
        return np.concatenate([each.to_numpy() for each in id_columns])
