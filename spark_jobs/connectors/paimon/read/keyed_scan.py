"""The executor half of scans of a table with a primary key: merged rows, or changelogs.

Executors import this module, so nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.file_columns import POSITION, SEQUENCE_NUMBER, VALUE_KIND
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.row_id import batches_with_row_ids


class ScannedSection(NamedTuple):
    """A unit of a table with a primary key: files whose key ranges overlap."""

    ordinal: int
    files: tuple[RunFile, ...]


@dataclass(frozen=True, slots=True)
class KeyedScan:
    """Implements ``PartReader`` for the merged rows of sections. Picklable.

    ``fields`` are the columns to read. Rows are left out unless they have, in each column of
    ``keys``, which are key columns, one of its values.
    """

    reader: SectionReader
    fields: tuple[pa.Field, ...]
    keys: Mapping[str, pa.Array]

    def read(self, parts: Sequence[ScannedSection]) -> Iterator[pa.RecordBatch]:
        """Read the sections of one task.

        Yields:
            The columns of ``fields`` in order, then the row id, named ``c0``, ``c1`` ….
        """
        names = [field.name for field in self.fields]
        for section in parts:
            for window in self.reader.rows(section.files, names, self.keys):
                yield from self._batches(section.ordinal, window)
                # Before more is read.
                del window

    def _batches(self, ordinal: int, window: pa.Table) -> Iterator[pa.RecordBatch]:
        columns = [_conformed(window.column(field.name), field) for field in self.fields]
        positions = window.column(POSITION).to_numpy().astype(np.int64)
        return batches_with_row_ids(columns, ordinal, positions)


def _conformed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    return pa.chunked_array([conform(chunk, field) for chunk in column.chunks], field.type)


class ChangelogFile(NamedTuple):
    """A changelog file, and its index among those that are read."""

    number: int
    file: RunFile


@dataclass(frozen=True, slots=True)
class ChangelogScan:
    """Implements ``PartReader`` for changelog files. Picklable."""

    reader: SectionReader
    fields: tuple[pa.Field, ...]

    def read(self, parts: Sequence[ChangelogFile]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task.

        Yields:
            ``fields`` in order, then the file's number, the kind of each change and its sequence
            number, named ``c0``, ``c1`` ….
        """
        for part in parts:
            for records in self.reader.unordered(part.file):
                for batch in records.combine_chunks().to_batches():
                    yield self._batch(part.number, batch)
                del records

    def _batch(self, number: int, records: pa.RecordBatch) -> pa.RecordBatch:
        loose = [each.with_nullable(nullable=True) for each in self.fields]
        arrays = [conform(records.column(each.name), each) for each in loose]
        arrays.append(pa.array(np.full(records.num_rows, number, np.int32)))
        arrays.append(records.column(VALUE_KIND).cast(pa.int32()))
        arrays.append(records.column(SEQUENCE_NUMBER).cast(pa.int64()))
        return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
