"""Columns in which files store the ids of rows, and who changed them last. Runs on executors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges


class TrackedColumns(NamedTuple):
    """The id of a row, and the number of the commit that changed it last; both are BIGINT.

    A number that is NULL is that of the file, so that a writer need not know its commit.
    """

    row_id: pa.Field
    number: pa.Field

    def added_to(self, schema: pa.Schema) -> pa.Schema:
        """The schema of files that store them, from that of a table's files."""
        return pa.schema([*schema, self.row_id, self.number])

    def without_numbers(self, changes: FileChanges) -> FileChanges:
        """``changes`` that also leave the numbers of updated rows to the commit."""
        updated = np.flatnonzero(~changes.deleted)
        if not len(updated):
            return changes
        numbers = ColumnChange(updated, pa.nulls(len(updated), pa.int64()))
        columns = {**changes.columns, self.number.name: numbers}
        return FileChanges(changes.positions, changes.deleted, columns)
