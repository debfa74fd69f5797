"""Writes new rows of a table into files of their places, such as partitions. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.runs import codes_of, runs_of_equal

P = TypeVar("P")


class FileLayout(Protocol[P]):
    """How a table's new ``files`` look, and where they belong."""

    @property
    def files(self) -> NewFiles:
        """The schema has all columns in the table's order."""

    def place_columns(self, rows: pa.RecordBatch | pa.Table, stored: pa.Table) -> list[Any]:
        """The columns whose values make up a place; ``stored`` are the rows as files have them."""

    def place(self, values: Sequence[pa.Scalar]) -> P:
        """The place of rows with these values of ``place_columns``."""

    def folder(self, place: P) -> str:
        """The folder for a new file of a place."""


class NewRowsWriter(Generic[P]):
    """Writes rows that arrive clustered by place."""

    def __init__(self, layout: FileLayout[P], new_path: Callable[[str], str]) -> None:
        self._layout = layout
        self._writer: RollingWriter[P, WrittenFile] = RollingWriter(
            layout.files, lambda place: layout.files.open(new_path(layout.folder(place)))
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the files."""
        return self._layout.files.schema

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows with all columns of the files, in any order, and those of their place.

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
        """
        columns = [conform(_array(rows.column(field.name)), field) for field in self.schema]
        table = pa.Table.from_arrays(columns, schema=self.schema)
        keys = self._layout.place_columns(rows, table)
        codes = [codes_of(pa.chunked_array([_array(each)])) for each in keys]
        for start, end in runs_of_equal(table.num_rows, codes):
            place = self._layout.place([each[start] for each in keys])
            self._writer.write(place, table.slice(start, end - start))

    def end_file(self) -> None:
        """Close the open file: further rows go to another one."""
        self._writer.end_file()

    def finish(self) -> list[tuple[P, WrittenFile]]:
        """Close the open file and return all written files with their places."""
        return self._writer.finish()

    def close_quietly(self) -> None:
        """Abandon the open file."""
        self._writer.close_quietly()


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
