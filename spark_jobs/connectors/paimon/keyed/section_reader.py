"""Reads the merged rows of a section: merge-on-read by windows of keys. Runs on executors.

The files of one level above 0 do not overlap and form one sorted run; each file of level 0 is a run
of its own. Rows up to the smallest last key of all runs' current rows form a window, which is
merged as a whole. At most one row group of each run is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.vectors import VectorLocation, read_vector
from spark_jobs.connectors.paimon.keyed.file_columns import (
    DELETE_KIND,
    POSITION,
    SEQUENCE_NUMBER,
    UPDATE_BEFORE_KIND,
    VALUE_KIND,
)
from spark_jobs.connectors.paimon.keyed.key_order import is_ascending, rows_up_to
from spark_jobs.connectors.paimon.keyed.keyed_schema import KeyedSchema
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.errors import CatalogError, ErrorCode

POSITION_BITS: Final = 40

_WINDOW_ROWS: Final = 131_072

_SYSTEM: Final = (
    pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False),
    pa.field(VALUE_KIND, pa.int8(), nullable=False),
)


class RunFile(NamedTuple):
    """A data file of a section; a tuple, because there may be many.

    ``first`` is its first key as in the manifest. ``delete_count`` is the number of its records
    that delete rows; None: an old version of Paimon did not record it. ``schema_id`` is None if its
    columns are the table's.
    """

    path: str
    level: int
    first: tuple[Any, ...]
    row_count: int
    delete_count: int | None
    vector: VectorLocation | None = None
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class SectionReader:
    """Reads sections of one table. Picklable.

    ``mappings`` are those of older schemas, by id. ``window_rows``: no run brings more rows into a
    window.
    """

    filesystem: pafs.FileSystem
    schema: KeyedSchema
    mappings: Mapping[int, tuple[FieldMapping, ...]]
    window_rows: int = _WINDOW_ROWS

    def rows(
        self,
        files: Sequence[RunFile],
        columns: Sequence[str],
        key_values: Mapping[str, pa.Array] | None = None,
    ) -> Iterator[pa.Table]:
        """The live rows of a section in key order.

        Only rows whose key has, in each column of ``key_values``, one of its values (ascending)
        are read.

        Yields:
            ``columns`` as in the table, then ``_SEQUENCE_NUMBER`` (int64, the largest of the row's
            records) and ``_POSITION`` (int64: the file's index in ``files``, then 40 bits with the
            position there of the newest record).

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: a file is damaged, or its keys do not ascend.
            NotSupportedError: the merge engine does not define what a delete record means.
        """
        levels = np.array([file.level for file in files], np.int64)
        looks_up = self.schema.looks_up and len(set(levels[levels > 0].tolist())) > 1
        reading = _Reading(self, tuple(columns), key_values or {}, levels if looks_up else None)
        numbered = sorted(enumerate(files), key=lambda each: (each[1].level, each[1].first))
        runs = []
        for level, members in groupby(numbered, key=lambda each: each[1].level):
            found = tuple(members)
            chained = [found] if level else [(each,) for each in found]
            runs += [_Run(reading.chunks(each), self.schema.key) for each in chained]
        for window in _windows(runs, self.schema.key):
            merged = reading.merged(window)
            if merged.num_rows:
                yield merged


@dataclass(frozen=True, slots=True)
class _Reading:
    """One pass over a section; ``levels`` of its files, if they matter for merging."""

    reader: SectionReader
    columns: tuple[str, ...]
    key_values: Mapping[str, pa.Array]
    levels: npt.NDArray[np.int64] | None

    def chunks(self, files: Sequence[tuple[int, RunFile]]) -> Iterator[pa.Table]:
        """The records of a run in key order."""
        last: pa.Table | None = None
        for index, file in files:
            with reading_file(file.path):
                for records in self._records(index, file):
                    keys = records.select(list(self.reader.schema.key))
                    both = keys if last is None else pa.concat_tables([last, keys])
                    self._require_ascending(file, both)
                    last = keys.slice(keys.num_rows - 1)
                    for start in range(0, records.num_rows, self.reader.window_rows):
                        yield records.slice(start, self.reader.window_rows)

    def merged(self, window: Sequence[pa.Table]) -> pa.Table:
        """The rows of a window, which has the records of at least one run."""
        records = pa.concat_tables(window)
        engine, key = self.reader.schema.engine, self.reader.schema.key
        if len(window) == 1:
            rows = engine.alone(records)
        else:
            rows = engine.merged(records, key, self._levels(records))
        fields = [self.reader.schema.columns.field(name) for name in self.columns]
        columns = [_conformed(rows.column(field.name), field) for field in fields]
        extra = [rows.column(SEQUENCE_NUMBER), rows.column(POSITION)]
        system = [pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(POSITION, pa.int64())]
        return pa.Table.from_arrays([*columns, *extra], schema=pa.schema([*fields, *system]))

    def _levels(self, records: pa.Table) -> npt.NDArray[np.int64] | None:
        if self.levels is None:
            return None
        files: npt.NDArray[np.int64] = records.column(POSITION).to_numpy() >> POSITION_BITS
        found: npt.NDArray[np.int64] = self.levels[files]
        return found

    def _records(self, index: int, file: RunFile) -> Iterator[pa.Table]:
        """The live records of a file."""
        probes = {name: KeyProbe(values) for name, values in self.key_values.items()}
        fields = self._fields(probes)
        scan = FileScan(self.reader.filesystem, fields, probes, self._mappings(file))
        deleted = np.zeros(0, dtype=np.int64)
        if file.vector is not None:
            deleted = read_vector(self.reader.filesystem, file.vector)
        retracting = 0
        for positions, columns in scan.rows(file.path, deleted, file.row_count):
            retracting += _count_retracting(columns.column(VALUE_KIND))
            if file.delete_count is not None and retracting > file.delete_count:
                raise _wrong_delete_count(file, retracting)
            places = pa.array(positions + (index << POSITION_BITS), pa.int64())
            yield columns.append_column(POSITION, places)
        is_whole = not probes and file.vector is None
        if is_whole and file.delete_count is not None and retracting < file.delete_count:
            raise _wrong_delete_count(file, retracting)

    def _fields(self, probes: Mapping[str, KeyProbe]) -> list[pa.Field]:
        """The columns to read: the key, those of the record, and others in the table's order.

        A key column with a probe is read as the probe's type.
        """
        schema = self.reader.schema
        kinds = {name: schema.columns.field(name).type for name in schema.key}
        kinds |= {name: probe.type for name, probe in probes.items()}
        needed = {*self.columns, *schema.engine.sequence_fields}.difference(schema.key)
        others = [_nullable(field) for field in schema.columns if field.name in needed]
        return [*(pa.field(name, kind) for name, kind in kinds.items()), *_SYSTEM, *others]

    def _mappings(self, file: RunFile) -> Mapping[str, FieldMapping] | None:
        if file.schema_id is None:
            return None
        found = {each.field.name: each for each in self.reader.mappings[file.schema_id]}
        return found | {field.name: FieldMapping(field, field) for field in _SYSTEM}

    def _require_ascending(self, file: RunFile, records: pa.Table) -> None:
        if not is_ascending(records, self.reader.schema.key):
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"the keys of {file.path} do not ascend, or overlap with those of another file of "
                f"level {file.level}",
                "Look for who wrote the file; this statement changed nothing.",
            )


def _count_retracting(kinds: pa.ChunkedArray) -> int:
    values = kinds.to_numpy()
    return int(np.count_nonzero((values == UPDATE_BEFORE_KIND) | (values == DELETE_KIND)))


def _wrong_delete_count(file: RunFile, found: int) -> CatalogError:
    return CatalogError(
        ErrorCode.DATA_FILE_UNREADABLE,
        f"{file.path} has {found} records that delete rows, but its manifest entry counts "
        f"{file.delete_count}: engines do not agree on whether the rows are deleted",
        "Look for who wrote the file; this statement changed nothing.",
    )


class _Run:
    """The records of a sorted run, of which some are current."""

    def __init__(self, chunks: Iterator[pa.Table], key: Sequence[str]) -> None:
        self._chunks = chunks
        self._key = key
        self.current: pa.Table | None = None
        self._advance()

    def last_key(self) -> tuple[Any, ...]:
        """The last key of the current records."""
        assert self.current is not None  # noqa: S101
        end = self.current.num_rows - 1
        return tuple(self.current.column(name)[end] for name in self._key)

    def taken(self, key: Sequence[Any]) -> pa.Table | None:
        """The current records up to ``key``, which is at most ``last_key``, and go on."""
        assert self.current is not None  # noqa: S101
        count = rows_up_to(self.current, self._key, key)
        if not count:
            return None
        found = self.current.slice(0, count)
        self.current = self.current.slice(count)
        if not self.current.num_rows:
            self._advance()
        return found

    def _advance(self) -> None:
        self.current = next(self._chunks, None)
        while self.current is not None and not self.current.num_rows:
            self.current = next(self._chunks, None)


def _windows(runs: Sequence[_Run], key: Sequence[str]) -> Iterator[list[pa.Table]]:
    """The records of all runs, cut at the same keys."""
    live = [run for run in runs if run.current is not None]
    while live:
        end = min((run.last_key() for run in live), key=lambda each: tuple(map(_comparable, each)))
        parts = [part for run in live if (part := run.taken(end)) is not None]
        yield parts
        live = [run for run in live if run.current is not None]


def _comparable(scalar: pa.Scalar) -> Any:
    """A Python value in the order of the key; times as numbers, because Python lacks some."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


def _conformed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    # NULLs stay, even if they are older than a NOT NULL of the column.
    loose = _nullable(field)
    chunks = [conform(chunk, loose) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_nullable(nullable=True)
