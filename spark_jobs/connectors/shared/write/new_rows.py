"""New rows into files of their places, such as partitions, whose names are one task's own.

Runs on executors.
"""

from __future__ import annotations

import math
import posixpath
import uuid
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.runs import codes_of, runs_of_equal
from spark_jobs.packing import filled
from spark_jobs.spi.writes import Fragment
from spark_jobs.storage.files import remove_file

P = TypeVar("P")
_MOST_FILES: Final = 2


class TaskFiles:
    """Names files, uniquely by ``task_key``, and removes them again."""

    def __init__(self, filesystem: pafs.FileSystem, task_key: str) -> None:
        self.filesystem = filesystem
        self._task = uuid.uuid5(uuid.NAMESPACE_OID, task_key).hex[:12]
        self._paths: list[str] = []

    @property
    def number(self) -> int:
        """One that differs from file to file and from task to task."""
        return int(self._task, 16) + len(self._paths)

    def data_path(self, prefix: str, directory: str) -> str:
        """The path of a new data file."""
        return self.new_path(prefix, directory, ".parquet")

    def new_path(self, prefix: str, directory: str, suffix: str = "") -> str:
        """The path of a new file."""
        name = f"{prefix}{self._task}-{len(self._paths)}{suffix}"
        self._paths.append(posixpath.join(directory, name))
        return self._paths[-1]

    def remove(self) -> None:
        """Remove all files that were named here."""
        for path in self._paths:
            remove_file(self.filesystem, path)


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

    def of_old_rows(self) -> FileLayout[P]:
        """The layout of files that store the ids of their rows."""


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


def small_files(
    fragments: Sequence[Fragment],
    target_file_size: int,
    place_of: Callable[[Mapping[str, Any]], Hashable],
) -> list[list[int]]:
    """Groups of fragments whose new files fit into one file each.

    ``place_of`` tells from the document of a new file what the rows of a file have in common. Only
    of places with more than twice as many new files as their size needs. Afterwards none has more,
    because two neighbouring groups do not fit into one file.
    """
    by_place: dict[Hashable, list[int]] = defaultdict(list)
    for index, fragment in enumerate(fragments):
        added = fragment.document.get("added")
        if added is not None and fragment.document["removed"] is None:
            by_place[place_of(added)].append(index)
    groups: list[list[int]] = []
    for members in by_place.values():
        total = sum(fragments[index].bytes_added for index in members)
        if len(members) > _MOST_FILES * math.ceil(total / target_file_size):
            groups += filled(members, lambda index: fragments[index].bytes_added, target_file_size)
    return [group for group in groups if len(group) > 1]
