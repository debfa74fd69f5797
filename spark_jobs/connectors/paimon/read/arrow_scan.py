"""The executor half of a scan with pyarrow: files or row-id ranges in, live rows out.

Executors import this module, so nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.vectors import VectorLocation, read_vector
from spark_jobs.datafiles.column_files import ColumnFile, ColumnFiles
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.row_id import batches_with_row_ids
from spark_jobs.formats.avro.decoding import require_fastavro


class ScannedFile(NamedTuple):
    """A data file and its deletion vector; a tuple, because there may be many.

    ``schema_id`` is None if its columns are the table's, ``row_count`` if it is not known.
    """

    ordinal: int
    path: str
    vector: VectorLocation | None
    schema_id: int | None = None
    row_count: int | None = None


@dataclass(frozen=True, slots=True)
class ArrowScan:
    """Implements ``PartReader`` for the live rows of data files. Picklable.

    ``fields`` are the columns to read. Rows are left out unless they have, in each column of
    ``keys``, one of its values. ``mappings`` are those of older schemas, by id.
    """

    filesystem: pafs.FileSystem
    fields: tuple[pa.Field, ...]
    keys: Mapping[str, pa.Array]
    mappings: Mapping[int, tuple[FieldMapping, ...]]

    def read(self, parts: Sequence[ScannedFile]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task.

        Yields:
            The columns of ``fields`` in order, then the row id, named ``c0``, ``c1`` ….
        """
        probes = {name: KeyProbe(values) for name, values in self.keys.items()}
        for file in parts:
            yield from self.rows(file, self._deleted(file), probes)

    def deleted_rows(self) -> Callable[[ScannedFile], Positions]:
        """What finds the deleted rows of a file."""
        return self._deleted

    def rows(
        self, file: ScannedFile, deleted: Positions, probes: Mapping[str, KeyProbe]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as ``read`` yields them, without those at ``deleted``."""
        scan = FileScan(self.filesystem, self.fields, probes, self._mappings_of(file))
        with reading_file(file.path, self.filesystem):
            for positions, columns in scan.rows(file.path, deleted, file.row_count):
                yield from batches_with_row_ids(columns.columns, file.ordinal, positions)

    def _mappings_of(self, file: ScannedFile) -> Mapping[str, FieldMapping] | None:
        if file.schema_id is None:
            return None
        return {each.field.name: each for each in self.mappings[file.schema_id]}

    def _deleted(self, file: ScannedFile) -> Positions:
        if file.vector is None:
            return np.zeros(0, dtype=np.int64)
        return read_vector(self.filesystem, file.vector)


@dataclass(frozen=True, slots=True)
class AvroCheck:
    """Implements ``PartReader``: reads nothing, but fails where Avro files cannot be read."""

    def read(self, parts: Sequence[object]) -> Iterator[pa.RecordBatch]:
        """Check this executor; no rows.

        Raises:
            CatalogError: LIBRARY_MISSING.
        """
        del parts
        require_fastavro()
        return iter(())


class RangeFile(NamedTuple):
    """A file of a range; ``columns`` are those of the table that it holds.

    ``schema_id`` is None if they are stored as the table's. A tuple, because there may be many.
    """

    path: str
    schema_id: int | None
    columns: tuple[str, ...]


class ScannedRange(NamedTuple):
    """A range of row ids: its files from the newest to the anchor, and its deletion vector."""

    ordinal: int
    files: tuple[RangeFile, ...]
    vector: VectorLocation | None
    row_count: int


@dataclass(frozen=True, slots=True)
class RangeScan:
    """Implements ``PartReader`` for the live rows of ranges. Picklable.

    ``fields``, ``keys`` and ``mappings`` are as in ``ArrowScan``.
    """

    filesystem: pafs.FileSystem
    fields: tuple[pa.Field, ...]
    keys: Mapping[str, pa.Array]
    mappings: Mapping[int, tuple[FieldMapping, ...]]

    def read(self, parts: Sequence[ScannedRange]) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task.

        Yields:
            The columns of ``fields`` in order, then the row id, named ``c0``, ``c1`` ….
        """
        probes = {name: KeyProbe(values) for name, values in self.keys.items()}
        names = [*(field.name for field in self.fields), *probes]
        for part in parts:
            files = column_files(part.files, names, self.mappings)
            scan = ColumnFiles(self.filesystem, files, self.fields, probes, part.row_count)
            yield from self._rows(scan, part)

    def _rows(self, scan: ColumnFiles, part: ScannedRange) -> Iterator[pa.RecordBatch]:
        deleted = np.zeros(0, np.int64)
        if part.vector is not None:
            deleted = read_vector(self.filesystem, part.vector)
        for positions, columns in scan.rows(deleted):
            yield from batches_with_row_ids(columns.columns, part.ordinal, positions)


def column_files(
    files: Sequence[RangeFile],
    names: Sequence[str],
    mappings: Mapping[int, tuple[FieldMapping, ...]],
) -> list[ColumnFile]:
    """The files with the columns ``names`` of a range, whose ``files`` are the newest first.

    If no file has any of them, the anchor, which tells how many rows there are.
    """
    read: dict[int, list[str]] = {}
    for name in dict.fromkeys(names):
        holder = next((n for n, file in enumerate(files) if name in file.columns), None)
        if holder is not None:
            read.setdefault(holder, []).append(name)
    return [
        ColumnFile(files[n].path, tuple(held), _by_name(files[n], mappings))
        for n, held in (read or {len(files) - 1: []}).items()
    ]


def _by_name(
    file: RangeFile, mappings: Mapping[int, tuple[FieldMapping, ...]]
) -> Mapping[str, FieldMapping] | None:
    if file.schema_id is None:
        return None
    return {each.field.name: each for each in mappings[file.schema_id]}
