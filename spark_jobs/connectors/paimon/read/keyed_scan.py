"""The executor half of the scan of a table with a primary key: sections in, merged rows out.

Executors import this module, so nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.file_columns import POSITION
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
