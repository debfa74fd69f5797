"""Reads the merged rows of a section: merge-on-read by windows of keys. Runs on executors.

The files of one level above 0 do not overlap and form one sorted run; each file of level 0 is a run
of its own. Rows up to the smallest last key of all runs' current rows form a window, which is
merged as a whole. Each run has one batch in memory. What readers of files hold beside it is bounded
by copying runs to the local disk (``sorted_runs``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
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
from spark_jobs.connectors.paimon.keyed.key_order import is_ascending
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema
from spark_jobs.connectors.paimon.keyed.sorted_runs import (
    SortedRun,
    held_bytes,
    parts,
    runs_to_spill,
    spilled,
)
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.decoded_rows import BatchSize
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.errors import CatalogError, ErrorCode

POSITION_BITS: Final = 40

Levels = npt.NDArray[np.int64]

_WINDOW_ROWS: Final = 65_536
# Of all runs' batches together, in Arrow form.
_WINDOW_BYTES: Final = 24 * 2**20
# Of all readers of files together.
_HELD_BYTES: Final = 32 * 2**20

_OF_ROWS: Final = (pa.field(SEQUENCE_NUMBER, pa.int64()), pa.field(POSITION, pa.int64()))
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


# The files of a run in key order, with their indexes in the section.
_RunFiles = tuple[tuple[int, RunFile], ...]


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
        reading = _Reading(self, tuple(columns), key_values or {})
        for window in reading.windows(files, ()):
            merged = self.merged(window, columns)
            del window
            if merged.num_rows:
                yield merged
            del merged

    def windows(
        self, files: Sequence[RunFile], others: Sequence[Iterator[pa.Table]] = ()
    ) -> Iterator[Window]:
        """The live records of a section, unmerged, with all columns.

        ``others`` are further records of level 0, each run in key order and with all those of a key
        in one table, with the columns of ``Window.records``.

        Raises:
            CatalogError: as of ``rows``.
        """
        return _Reading(self, tuple(self.schema.columns.names), {}).windows(files, others)

    def merged(self, window: Window, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a window, as ``rows`` yields them; ``columns`` None: all.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: records of a key have equal sequence numbers.
            NotSupportedError: the merge engine does not define what a delete record means.
        """
        engine, key = self.schema.engine, self.schema.key
        if window.is_one_run:
            rows = engine.alone(window.records)
        else:
            levels = window.levels if self.schema.looks_up and window.has_higher_levels else None
            rows = engine.merged(window.records, key, levels)
        names = self.schema.columns.names if columns is None else columns
        fields = [self.schema.columns.field(name) for name in names]
        arrays = [_conformed(rows.column(field.name), field) for field in fields]
        arrays += [rows.column(field.name) for field in _OF_ROWS]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*fields, *_OF_ROWS]))

    def unordered(self, file: RunFile) -> Iterator[pa.Table]:
        """The records of a file that need not be sorted, with all columns, as they were written.

        Raises:
            CatalogError: DATA_FILE_UNREADABLE: the file is damaged.
        """
        reading = _Reading(self, tuple(self.schema.columns.names), {})
        most = BatchSize(_WINDOW_BYTES, self.window_rows)
        with reading_file(file.path):
            for records in reading.records(0, file, most):
                yield records.drop_columns([POSITION])
                del records


@dataclass(frozen=True, slots=True)
class Window:
    """All live records of some keys, in any order; ``is_one_run``: no key has two of them.

    ``records`` have the key's columns, ``_SEQUENCE_NUMBER``, ``_VALUE_KIND``, the other columns and
    ``_POSITION``. ``file_levels`` has the level of each file.
    """

    records: pa.Table
    file_levels: Levels
    is_one_run: bool

    @property
    def files(self) -> npt.NDArray[np.int64]:
        """The file of each record, by its index in the section."""
        found: npt.NDArray[np.int64] = self.records.column(POSITION).to_numpy() >> POSITION_BITS
        return found

    @property
    def levels(self) -> Levels:
        """The level of each record."""
        found: Levels = self.file_levels[self.files]
        return found

    @property
    def has_higher_levels(self) -> bool:
        """Whether files are on several levels above 0."""
        return len(np.unique(self.file_levels[self.file_levels > 0])) > 1

    def only(self, chosen: npt.NDArray[np.bool_]) -> Window:
        """The window without the other records."""
        levels = set(self.levels[chosen].tolist())
        is_one_run = self.is_one_run or (len(levels) < 2 and 0 not in levels)
        return Window(self.records.filter(pa.array(chosen)), self.file_levels, is_one_run)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One pass over a section."""

    reader: SectionReader
    columns: tuple[str, ...]
    key_values: Mapping[str, pa.Array]

    def windows(
        self, files: Sequence[RunFile], others: Sequence[Iterator[pa.Table]]
    ) -> Iterator[Window]:
        """The records of all runs, cut at the same keys."""
        key = self.reader.schema.key
        levels = np.array([*(file.level for file in files), 0], np.int64)
        run_files = _runs_of(files)
        sizes = self._batch_sizes(run_files, len(others))
        spills = self._to_spill(run_files)
        with TemporaryDirectory(prefix="runs-") if spills else nullcontext() as folder:
            folders = [folder if index in spills else None for index in range(len(run_files))]
            chunks = map(self.chunks, run_files, sizes, folders)
            runs = [SortedRun(each, key) for each in chunks]
            runs += [SortedRun(each, key, is_unique=False) for each in others]
            for records, is_one_run in parts(runs, key):
                yield Window(records, levels, is_one_run)
                # Before more is read.
                del records

    def chunks(self, run: _RunFiles, most: BatchSize, folder: str | None) -> Iterator[pa.Table]:
        """The records of a run in key order, by way of copies in ``folder`` if there is one."""
        last: pa.Table | None = None
        for index, file in run:
            with reading_file(file.path):
                batches = self.records(index, file, most)
                if folder is not None:
                    batches = spilled(batches, Path(folder, f"{index}.arrow"))
                for records in batches:
                    last = self._last_key(file, records, last)
                    for start in range(0, records.num_rows, most.rows):
                        yield records.slice(start, most.rows)
                    del records

    def _batch_sizes(self, runs: Sequence[_RunFiles], others: int) -> list[BatchSize]:
        """A share of the window for each run: alike in one half, by their rows in the other.

        So a run ends few windows, whether it has a few rows beside many or as many as others.
        """
        half = _WINDOW_BYTES // 2
        rows = [sum(file.row_count for _, file in run) for run in runs]
        alike = half // max(len(runs) + others, 1)
        sizes = [alike + half * count // max(sum(rows), 1) for count in rows]
        return [BatchSize(size, self.reader.window_rows) for size in sizes]

    def _to_spill(self, runs: Sequence[_RunFiles]) -> set[int]:
        """The runs that are copied first; none if only some of their rows are wanted."""
        if self.key_values:
            return set()
        columns = pa.schema(self.fields({}))
        held = [
            max(held_bytes(each.path, each.row_count, columns) for _, each in run) for run in runs
        ]
        return runs_to_spill(held, _HELD_BYTES)

    def records(self, index: int, file: RunFile, most: BatchSize) -> Iterator[pa.Table]:
        """The live records of a file, in batches unless they are probed."""
        probes = {name: KeyProbe(values) for name, values in self.key_values.items()}
        fields = self.fields(probes)
        sizes = None if probes else most
        scan = FileScan(self.reader.filesystem, fields, probes, self._mappings(file), sizes)
        deleted = np.zeros(0, dtype=np.int64)
        if file.vector is not None:
            deleted = read_vector(self.reader.filesystem, file.vector)
            _require_within(file, deleted)
        retracting = 0
        for positions, columns in scan.rows(file.path, deleted, file.row_count):
            retracting += _count_retracting(columns.column(VALUE_KIND))
            if file.delete_count is not None and retracting > file.delete_count:
                raise _wrong_delete_count(file, retracting)
            places = pa.array(positions + (index << POSITION_BITS), pa.int64())
            yield columns.append_column(POSITION, places)
            # Before more is read.
            del positions, columns, places
        is_whole = not probes and file.vector is None
        if is_whole and file.delete_count is not None and retracting < file.delete_count:
            raise _wrong_delete_count(file, retracting)

    def fields(self, probes: Mapping[str, KeyProbe]) -> list[pa.Field]:
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

    def _last_key(self, file: RunFile, records: pa.Table, before: pa.Table | None) -> pa.Table:
        """The last key of records, which must ascend from the key ``before`` them."""
        keys = records.select(list(self.reader.schema.key))
        both = keys if before is None else pa.concat_tables([before, keys])
        if not is_ascending(both, self.reader.schema.key):
            raise CatalogError(
                ErrorCode.DATA_FILE_UNREADABLE,
                f"the keys of {file.path} do not ascend, or overlap with those of another file of "
                f"level {file.level}",
                "Look for who wrote the file; this statement changed nothing.",
            )
        # Not a slice, which would keep all keys.
        return keys.take(pa.array([keys.num_rows - 1]))


def _runs_of(files: Sequence[RunFile]) -> list[_RunFiles]:
    numbered = sorted(enumerate(files), key=lambda each: (each[1].level, each[1].first))
    runs: list[_RunFiles] = []
    for level, grouped in groupby(numbered, key=lambda each: each[1].level):
        members = tuple(grouped)
        runs += [members] if level else [(each,) for each in members]
    return runs


def _require_within(file: RunFile, deleted: Positions) -> None:
    if len(deleted) and deleted[-1] >= file.row_count:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"The deletion vector of {file.path} marks row {deleted[-1]}, but the file has only "
            f"{file.row_count} rows.",
            "Look for who wrote the deletion vector; this statement changed nothing.",
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


def _conformed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    # NULLs stay, even if they are older than a NOT NULL of the column.
    loose = _nullable(field)
    chunks = [conform(chunk, loose) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_nullable(nullable=True)
