"""Groups the change rows that reach a sink into the changes of whole files. Runs on executors.

Independent of the table format: the connector applies a file's changes and writes new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.row_id import FILE_FIELD, POSITION_FIELD
from spark_jobs.datafiles.runs import runs_of_equal
from spark_jobs.errors import ErrorCode, InternalError, NotSupportedError
from spark_jobs.spi import rows


class RowPositionSink:
    """Takes change rows: UPDATE and DELETE by file and position, then INSERT.

    ``schema`` is that of the table's files; ``assigned_columns`` is indexed by case number.
    ``change_file`` gets the ordinal and all changes of each file, ``insert`` the INSERT rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        assigned_columns: Sequence[Sequence[str]],
        change_file: Callable[[int, FileChanges], None],
        insert: Callable[[pa.RecordBatch], None],
    ) -> None:
        self._schema = schema
        self._assigned_columns = assigned_columns
        self._change_file = change_file
        self._insert = insert
        self._file: int | None = None
        self._changes: list[pa.RecordBatch] = []
        self._done: set[int] = set()

    def take(self, batch: pa.RecordBatch) -> None:
        """Take the next rows.

        Raises:
            InternalError: the rows are not in the order of the layout.
            NotSupportedError: the changes of a file do not fit into memory.
        """
        operations = batch.column(rows.OPERATION).to_numpy()
        change_count = int(np.count_nonzero(operations != rows.INSERT))
        if np.any(operations[:change_count] == rows.INSERT):
            raise _out_of_order("INSERT rows stand before others")
        if change_count:
            self._take_changes(batch.slice(0, change_count))
        if change_count < batch.num_rows:
            self.finish()
            self._insert(batch.slice(change_count))

    def finish(self) -> None:
        """Hand over the changes of the last file; raises as ``take``."""
        if self._file is None:
            return
        ordinal, changes = self._file, self._collect_changes()
        self._file, self._changes = None, []
        if ordinal in self._done:
            raise _out_of_order(f"changes of file {ordinal} are not together")
        self._done.add(ordinal)
        self._change_file(ordinal, changes)

    def _take_changes(self, batch: pa.RecordBatch) -> None:
        files = pc.struct_field(batch.column(rows.ROW_ID), FILE_FIELD).to_numpy()
        for start, end in runs_of_equal(len(files), [files]):
            if self._file != files[start]:
                self.finish()
                self._file = int(files[start])
            self._changes.append(batch.slice(start, end - start))

    def _collect_changes(self) -> FileChanges:
        table = pa.Table.from_batches(self._changes).combine_chunks()
        row_ids = table.column(rows.ROW_ID)
        updated = table.column(rows.OPERATION).to_numpy() == rows.UPDATE
        cases = table.column(rows.CASE_NUMBER).to_numpy()
        columns = {}
        for name in sorted({name for names in self._assigned_columns for name in names}):
            assigning = [i for i, names in enumerate(self._assigned_columns) if name in names]
            changed = np.flatnonzero(updated & np.isin(cases, assigning))
            if len(changed):
                self._require_small(name, table.column(name))
                values = pa.concat_arrays(table.column(name).take(pa.array(changed)).chunks)
                # Convert to the table's type first: a file's type may be finer, or allow NULL.
                columns[name] = ColumnChange(changed, conform(values, self._schema.field(name)))
        positions = pc.struct_field(row_ids, POSITION_FIELD).to_numpy()
        return FileChanges(positions, ~updated, columns)

    def _require_small(self, name: str, values: pa.ChunkedArray) -> None:
        if not pa.types.is_primitive(values.type) and values.nbytes > rows.MOST_ARRAY_BYTES:
            raise NotSupportedError(
                f"The new values of column {name} in one data file have more than "
                f"{rows.MOST_ARRAY_BYTES} bytes.",
                "Change fewer rows at once, in several statements.",
                name=name,
            )


def _out_of_order(problem: str) -> InternalError:
    return InternalError(
        ErrorCode.INTERNAL_ERROR,
        f"The sink's rows are not in the order of its layout: {problem}.",
        "This is a defect: report it with the statement.",
    )
