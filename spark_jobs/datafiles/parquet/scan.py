"""Reads chosen rows of a parquet file and their positions with pyarrow, one row group at a time.

Key columns are decoded first; if no row of a row group has a wanted key, no other column of it is
read. The other columns are decoded one after another, so that at most one of them is held as a
whole beside the key columns and the chosen rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.footer import NotSpliceableError, read_footer
from spark_jobs.datafiles.parquet.options import low_cardinality_columns
from spark_jobs.datafiles.parquet.stored_decimals import as_stored, decimals


@dataclass(frozen=True, slots=True)
class FileScan:
    """What to read from a file: ``fields`` have the wanted columns and Arrow types.

    ``probes`` are by column name; only rows that all of them find are read. ``mappings``, by column
    name, are for files that were written with an older schema.
    """

    filesystem: pafs.FileSystem
    fields: Sequence[pa.Field]
    probes: Mapping[str, KeyProbe]
    mappings: Mapping[str, FieldMapping] | None = None

    def rows(self, path: str, deleted: Positions) -> Iterator[tuple[Positions, pa.Table]]:
        """Positions (from 0) and columns of the chosen rows, for each row group that has any.

        Rows at the positions ``deleted`` (ascending) are left out.
        """
        with self.filesystem.open_input_file(path) as stream:
            file, decimal_types = _opened(stream)
            start = 0
            for number in range(file.num_row_groups):
                group = _RowGroup(file, number, decimal_types, self.mappings)
                yield from self._rows_of(group, start, _within(deleted, start, group.row_count))
                start += group.row_count

    def _rows_of(
        self, group: _RowGroup, start: int, deleted: Positions
    ) -> Iterator[tuple[Positions, pa.Table]]:
        if not all(group.may_hold(name, probe) for name, probe in self.probes.items()):
            return
        live = np.ones(group.row_count, dtype=bool)
        live[deleted] = False
        probed = {}
        for name, probe in self.probes.items():
            if live.any():
                stored = group.column(name)
                if stored is None:
                    return
                probed[name] = group.values(stored, pa.field(name, probe.type))
                live &= probe.found(probed[name])
        chosen = np.flatnonzero(live)
        if not len(chosen):
            return
        columns = []
        for field in self.fields:
            values = probed.get(field.name)
            stored = group.column(field.name) if values is None else values
            if stored is None:
                columns.append(pa.chunked_array([pa.nulls(len(chosen), field.type)]))
                continue
            if len(chosen) < group.row_count:
                stored = stored.take(pa.array(chosen))
            columns.append(group.values(stored, field) if values is None else stored)
        yield chosen + start, pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


class _RowGroup:
    """One row group, whose columns are decoded on demand."""

    def __init__(
        self,
        file: pq.ParquetFile,
        number: int,
        decimal_types: Mapping[str, pa.Decimal128Type],
        mappings: Mapping[str, FieldMapping] | None,
    ) -> None:
        self._file = file
        self._number = number
        self._decimal_types = decimal_types
        self._mappings = mappings
        self._metadata = file.metadata.row_group(number)
        self.row_count: int = self._metadata.num_rows

    def may_hold(self, name: str, probe: KeyProbe) -> bool:
        """False if the statistics of a column without nested fields exclude all values."""
        source = self._name_in_file(name)
        if source is None:
            return False
        (leaf, *_) = self._leaves(source)
        statistics = self._metadata.column(leaf).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        return probe.may_be_within(statistics.min, statistics.max)

    def column(self, name: str) -> pa.ChunkedArray | None:
        """A column for all rows, as decoded; ``values`` converts it. None: the file has none."""
        source = self._name_in_file(name)
        if source is None:
            return None
        # By index: in a column name, pyarrow takes dots for paths to nested fields.
        leaves = list(self._leaves(source))
        reader = self._file.reader
        return reader.read_row_group(self._number, column_indices=leaves, use_threads=False)[0]

    def values(self, decoded: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """The ``decoded`` rows of a column as values of ``field``."""
        chunks = decoded.chunks
        kind = self._decimal_types.get(self._name_in_file(field.name) or "")
        if kind is not None:
            chunks = [decimals(chunk, kind) for chunk in chunks]
        if self._mappings is not None:
            mapping = self._mappings[field.name]
            chunks = [mapping.arranged(chunk) for chunk in chunks]
        return pa.chunked_array([conform(chunk, field) for chunk in chunks], field.type)

    def _name_in_file(self, name: str) -> str | None:
        if self._mappings is None:
            return name
        source = self._mappings[name].source
        return None if source is None else str(source.name)

    def _leaves(self, name: str) -> range:
        start = 0
        for field in self._file.schema_arrow:
            count = _leaf_count(field.type)
            if field.name == name:
                return range(start, start + count)
            start += count
        raise pa.ArrowInvalid(f"it has no column {name}")


def _opened(
    stream: pa.NativeFile,
) -> tuple[pq.ParquetFile, Mapping[str, pa.Decimal128Type]]:
    """The file, set up to decode as little as possible, and the types of its decimal columns."""
    try:
        metadata, types = as_stored(read_footer(stream))
    except NotSpliceableError:
        metadata, types = pq.ParquetFile(stream).metadata, {}
    texts = low_cardinality_columns(metadata, metadata.schema.to_arrow_schema())
    return pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts), types


def _leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.DictionaryType) or not kind.num_fields:
        return 1
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields))


def _within(positions: Positions, start: int, count: int) -> Positions:
    first, last = np.searchsorted(positions, [start, start + count])
    return positions[first:last] - start
