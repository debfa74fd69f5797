"""Reads rows of data files that came or went, and changelog files. Executors import this module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.format.vectors import VectorLocation, read_vector
from spark_jobs.connectors.paimon.keyed.file_columns import SEQUENCE_NUMBER, VALUE_KIND
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.file_changes import Positions


class ChangedPart(NamedTuple):
    """A file; ``marks``: read only rows that its vector marks, and ``before`` does not."""

    file: ScannedFile
    marks: bool = False
    before: VectorLocation | None = None


@dataclass(frozen=True, slots=True)
class ChangedScan:
    """Implements ``PartReader`` for rows that came or went. Picklable."""

    scan: ArrowScan

    def read(self, parts: Sequence[ChangedPart]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task; yields as ``ArrowScan.read``."""
        for part in parts:
            left_out = self._positions(part.file.vector)
            if part.marks:
                before = self._positions(part.before)
                chosen = np.setdiff1d(left_out, before, assume_unique=True)
                if not len(chosen):
                    continue
                assert part.file.row_count is not None  # noqa: S101 - manifests tell it
                is_left_out = np.ones(part.file.row_count, dtype=bool)
                is_left_out[chosen] = False
                left_out = np.flatnonzero(is_left_out)
            yield from self.scan.rows(part.file, left_out, {})

    def _positions(self, vector: VectorLocation | None) -> Positions:
        if vector is None:
            return np.zeros(0, dtype=np.int64)
        return read_vector(self.scan.filesystem, vector)


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
