"""Reads chosen rows of a data file and their positions, by row groups or in smaller batches.

Key columns are decoded first; if no row of a row
group has a wanted key, no other column of it is read. The other columns are decoded one after
another, so that at most one of them is held as a whole beside the key columns and the chosen rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.datafiles.conform import read_as
from spark_jobs.datafiles.decoded_rows import BatchSize, DecodedRows
from spark_jobs.datafiles.field_mapping import FieldMapping, recorded_columns
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.row_groups import RowGroup, row_groups


@dataclass(frozen=True, slots=True)
class FileScan:
    """What to read from a file: ``fields`` have the wanted columns and Arrow types.

    ``probes`` are by column name; only rows that all of them find are read. ``mappings``, by column
    name, are for files that do not have the table's columns, such as those of an older schema.
    ``most``: the size of the batches to read, without probes; None: row groups.
    """

    filesystem: pafs.FileSystem
    fields: Sequence[pa.Field]
    probes: Mapping[str, KeyProbe]
    mappings: Mapping[str, FieldMapping] | None = None
    most: BatchSize | None = None

    def rows(
        self, path: str, deleted: Positions, row_count: int | None = None
    ) -> Iterator[tuple[Positions, pa.Table]]:
        """Positions (from 0) and columns of the chosen rows, for each row group or batch with any.

        Rows at the positions ``deleted`` (ascending) are left out. The file must have ``row_count``
        rows, if it is known: the end of an Avro file may be missing without a trace.

        Raises:
            pa.ArrowInvalid: the file is damaged, or does not hold what its schema says.
        """
        with self.filesystem.open_input_file(path) as stream:
            start = 0
            for part in self._parts(path, stream, deleted):
                yield from self._rows_of(part, start, _within(deleted, start, part.row_count))
                start += part.row_count
                del part
        if row_count not in (None, start):
            raise pa.ArrowInvalid(f"it has {start} rows, but should have {row_count}")

    def rows_at(self, path: str, positions: Positions) -> Iterator[tuple[Positions, pa.Table]]:
        """Like ``rows``, for the rows at ``positions`` (ascending), which no probe leaves out.

        Raises:
            pa.ArrowInvalid: the file is damaged, has fewer rows, or does not hold what its schema
                says.
        """
        with self.filesystem.open_input_file(path) as stream:
            start = 0
            for group in self.groups(path, stream):
                chosen = _within(positions, start, group.row_count)
                if len(chosen):
                    yield chosen + start, self.chosen(group, start, chosen)
                start += group.row_count
                if start > positions[-1]:
                    return
        raise pa.ArrowInvalid(f"it has {start} rows, none at position {positions[-1]}")

    def groups(self, path: str, stream: pa.NativeFile) -> Iterator[RowGroup]:
        """The row groups of the open file at ``path``, for ``chosen``.

        Raises:
            pa.ArrowInvalid: the file is damaged, or does not hold what its schema says.
        """
        return row_groups(path, stream, self._recorded())

    def chosen(self, group: RowGroup, start: int, chosen: Positions) -> pa.Table:
        """The columns of the rows ``chosen`` (ascending, from 0) of a row group.

        ``start`` is the position of the group's first row.
        """
        columns = self._columns(group, start, chosen, {})
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))

    def _parts(self, path: str, stream: pa.NativeFile, deleted: Positions) -> Iterator[RowGroup]:
        """The row groups, or the batches of those that are not wholly deleted."""
        names = [stored for field in self.fields if (stored := self._stored(field.name))]
        start = 0
        for group in row_groups(path, stream, self._recorded(), self.most):
            count = group.row_count
            gone = len(_within(deleted, start, count))
            if self.most is None or gone == count:
                yield group
            elif names:
                yield from group.parts(names, self.most)
            else:
                yield from DecodedRows(pa.table({"": pa.nulls(count)})).parts(names, self.most)
            start += count
            del group

    def _rows_of(
        self, group: RowGroup, start: int, deleted: Positions
    ) -> Iterator[tuple[Positions, pa.Table]]:
        if not all(self._may_hold(group, name, probe) for name, probe in self.probes.items()):
            return
        live = np.ones(group.row_count, dtype=bool)
        live[deleted] = False
        probed = {}
        for name, probe in self.probes.items():
            if live.any():
                probed[name] = self._probed(group, pa.field(name, probe.type))
                live &= probe.found(probed[name])
        chosen = np.flatnonzero(live)
        if not len(chosen):
            return
        columns = self._columns(group, start, chosen, probed)
        yield chosen + start, pa.Table.from_arrays(columns, schema=pa.schema(self.fields))

    def _may_hold(self, group: RowGroup, name: str, probe: KeyProbe) -> bool:
        stored = self._stored(name)
        if stored is None:
            return bool(self._missing(name, 1).is_valid()[0].as_py())
        return group.may_hold(stored, probe)

    def _probed(self, group: RowGroup, field: pa.Field) -> pa.ChunkedArray:
        """A key column for all rows."""
        stored = self._stored(field.name)
        if stored is None:
            return pa.chunked_array([self._missing(field.name, group.row_count)])
        return self._values(group, group.column(stored), field)

    def _missing(self, name: str, count: int) -> pa.Array:
        """Values of a column that the file does not have."""
        assert self.mappings is not None  # noqa: S101
        return self.mappings[name].missing(count)

    def _columns(
        self,
        group: RowGroup,
        start: int,
        chosen: Positions,
        probed: Mapping[str, pa.ChunkedArray],
    ) -> list[pa.ChunkedArray]:
        """The columns of the chosen rows of a row group, whose first row is at ``start``."""
        columns = [self._chosen(group, chosen, field, probed) for field in self.fields]
        if self.mappings is None:
            return columns
        mappings = [self.mappings[field.name] for field in self.fields]
        filled = zip(mappings, columns, strict=True)
        return [mapping.filled(column, chosen + start) for mapping, column in filled]

    def _chosen(
        self,
        group: RowGroup,
        chosen: Positions,
        field: pa.Field,
        probed: Mapping[str, pa.ChunkedArray],
    ) -> pa.ChunkedArray:
        """A column of the chosen rows."""
        stored = self._stored(field.name)
        if stored is None:
            return pa.chunked_array([self._missing(field.name, len(chosen))])
        values = probed.get(field.name)
        column = group.column(stored) if values is None else values
        if len(chosen) < group.row_count:
            column = column.take(pa.array(chosen))
        return self._values(group, column, field) if values is None else column

    def _values(
        self, group: RowGroup, decoded: pa.ChunkedArray, field: pa.Field
    ) -> pa.ChunkedArray:
        """The ``decoded`` rows of a column as values of ``field``."""
        stored = self._stored(field.name) or field.name
        chunks = [group.values(stored, chunk) for chunk in decoded.chunks]
        if self.mappings is not None:
            chunks = [self.mappings[field.name].arranged(chunk) for chunk in chunks]
        return pa.chunked_array([read_as(chunk, field) for chunk in chunks], field.type)

    def _recorded(self) -> Sequence[pa.Field]:
        """The columns to read, as the schema of the file has them."""
        if self.mappings is None:
            return self.fields
        names = {*self.probes, *(field.name for field in self.fields)}
        return recorded_columns(self.mappings[name] for name in names)

    def _stored(self, name: str) -> str | None:
        """The name of a column in the file; None if it has none."""
        if self.mappings is None:
            return name
        source = self.mappings[name].source
        return None if source is None else str(source.name)


def _within(positions: Positions, start: int, count: int) -> Positions:
    first, last = np.searchsorted(positions, [start, start + count])
    return positions[first:last] - start
