"""Reads rows whose columns are in several files, each with all rows in the same order.

The file with the keys is read first, and the others only at the positions of the rows that it
leaves. Row groups need not have the same boundaries. Memory: the chosen rows of a row group of the
first file, and of each other file one decoded column, or its row group if it is needed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_groups import RowGroup


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """A file, and the ``names`` of the columns to read from it; ``mappings`` as in ``FileScan``."""

    path: str
    names: tuple[str, ...]
    mappings: Mapping[str, FieldMapping] | None


@dataclass(frozen=True, slots=True)
class ColumnFiles:
    """What to read from files of the same rows; there is one at least.

    ``fields`` have the wanted columns and Arrow types; those that no file has are NULL. Only rows
    that all ``probes``, by column name, find are read. Each file has ``row_count`` rows.
    """

    filesystem: pafs.FileSystem
    files: Sequence[ColumnFile]
    fields: Sequence[pa.Field]
    probes: Mapping[str, KeyProbe]
    row_count: int

    def rows(self, deleted: Positions) -> Iterator[tuple[Positions, pa.Table]]:
        """Positions (from 0) and columns of the chosen rows, in order.

        Rows at the positions ``deleted`` (ascending) are left out.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: a file is damaged, does not hold what its schema
                says, or has another number of rows.
        """
        if not all(any(name in file.names for file in self.files) for name in self.probes):
            return
        # A stable order: the files with keys first.
        first, *others = sorted(self.files, key=lambda file: not self.probes.keys() & {*file.names})
        lead = self._scan(first)
        with ExitStack() as stack:
            followers = [self._follower(each, stack) for each in others]
            with reading_file(first.path):
                for positions, columns in lead.rows(first.path, deleted, self.row_count):
                    yield from self._joined(positions, columns, followers)
                    del columns
            for each in followers:
                each.finish(self.row_count)

    def _scan(self, file: ColumnFile) -> FileScan:
        own = {name: probe for name, probe in self.probes.items() if name in file.names}
        wanted = [field for field in self.fields if field.name in file.names]
        return FileScan(self.filesystem, wanted, own, file.mappings)

    def _follower(self, file: ColumnFile, stack: ExitStack) -> _Follower:
        scan = self._scan(file)
        known = {field.name for field in scan.fields}
        keys = [pa.field(n, each.type) for n, each in scan.probes.items() if n not in known]
        scan = FileScan(self.filesystem, [*scan.fields, *keys], scan.probes, file.mappings)
        with reading_file(file.path):
            stream = stack.enter_context(self.filesystem.open_input_file(file.path))
        return _Follower(file.path, scan, stream)

    def _joined(
        self, positions: Positions, columns: pa.Table, followers: Sequence[_Follower]
    ) -> Iterator[tuple[Positions, pa.Table]]:
        """The rows with the columns of all files; none is yielded if no row is left."""
        tables = [columns]
        for follower in followers:
            own = follower.at(positions)
            is_found = follower.found(own)
            if not is_found.all():
                positions, mask = positions[is_found], pa.array(is_found)
                tables = [each.filter(mask) if each.num_columns else each for each in tables]
                own = own.filter(mask)
            if not len(positions):
                return
            tables.append(own)
        by_name = {name: each.column(name) for each in tables for name in each.column_names}
        arrays = [
            by_name.get(field.name, pa.chunked_array([pa.nulls(len(positions), field.type)]))
            for field in self.fields
        ]
        yield positions, pa.Table.from_arrays(arrays, schema=pa.schema(self.fields))


class _Follower:
    """Reads the rows of a file at positions that are known step by step, in ascending order."""

    def __init__(self, path: str, scan: FileScan, stream: pa.NativeFile) -> None:
        self._path = path
        self._scan = scan
        self._groups = scan.groups(path, stream)
        self._group: RowGroup | None = None
        self._start = self._end = 0
        self._times = 0
        self._whole: pa.Table | None = None

    def at(self, positions: Positions) -> pa.Table:
        """The columns of the rows at ``positions``, which follow those of the last call."""
        parts = []
        with reading_file(self._path):
            done = 0
            while done < len(positions):
                group = self._group_with(int(positions[done]))
                end = int(np.searchsorted(positions, self._end))
                parts.append(self._rows(group, positions[done:end] - self._start))
                done = end
        return pa.concat_tables(parts)

    def found(self, columns: pa.Table) -> np.ndarray:
        """A mask of the rows with the wanted keys."""
        is_found = np.ones(columns.num_rows, np.bool_)
        for name, probe in self._scan.probes.items():
            is_found &= probe.found(columns.column(name))
        return is_found

    def finish(self, row_count: int) -> None:
        """Check that the file has ``row_count`` rows."""
        with reading_file(self._path):
            for group in self._groups:
                self._end += group.row_count
            if self._end != row_count:
                raise pa.ArrowInvalid(f"it has {self._end} rows, but should have {row_count}")

    def _group_with(self, position: int) -> RowGroup:
        while self._group is None or position >= self._end:
            self._whole, self._times = None, 0
            self._group = next(self._groups, None)
            if self._group is None:
                raise pa.ArrowInvalid(f"it has {self._end} rows, none at position {position}")
            self._start, self._end = self._end, self._end + self._group.row_count
        return self._group

    def _rows(self, group: RowGroup, chosen: Positions) -> pa.Table:
        """Rows of the current row group, which is kept once it is asked for again."""
        self._times += 1
        if self._times == 1:
            return self._scan.chosen(group, self._start, chosen)
        if self._whole is None:
            everything = np.arange(group.row_count)
            self._whole = self._scan.chosen(group, self._start, everything)
        return self._whole.take(pa.array(chosen))
