"""The units of reading of a pinned snapshot: files, sections or row-id ranges. Driver only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.data_files import key_range
from spark_jobs.connectors.paimon.read.arrow_scan import RangeFile, ScannedRange
from spark_jobs.connectors.paimon.read.file_ranges import FileRanges, has_bounds, ranges_of_files
from spark_jobs.connectors.paimon.table.file_refusals import (
    refuse_file,
    refuse_indexes,
    refuse_vectors_of_columns,
)
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import ColumnRange, PlannedFile, TableHandle

_THIN_OPTION = "data-file.thin-mode"


def plan_files(handle: TableHandle) -> tuple[PlannedFile, ...]:
    """All data files, ordered by path, or all sections or ranges; the index is the ordinal.

    Raises:
        NotSupportedError: a file cannot be read correctly here; gives the reason.
        ValueError: a deletion vector deletes more rows than its file has.
    """
    table = pinned_table(handle)
    refuse_indexes(table, handle.name)
    for _, entry in table.files.located_entries:
        refuse_file(table, handle.name, entry)
    _require_unique_names(handle, table.files.located_entries)
    if table.keyed is not None:
        return _planned_sections(table, table.keyed)
    if table.evolves_columns:
        refuse_vectors_of_columns(table, handle.name)
        return _planned_ranges(table)
    return _described(table, table.files.located_entries)


def described_files(table: PinnedTable, entries: Sequence[Any]) -> tuple[PlannedFile, ...]:
    """Files of later snapshots, only for their partitions and statistics.

    In a table with a primary key, their records change rows whose other columns are unknown.
    """
    if table.keyed is not None:
        keyed = table.keyed
        return tuple(_described_records(table, keyed, e, n) for n, e in enumerate(entries))
    return _described(table, [(entry.file.file_name, entry) for entry in entries])


def _described(table: PinnedTable, located: Sequence[tuple[str, Any]]) -> tuple[PlannedFile, ...]:
    ranges_of = ranges_of_files(table, [entry for _, entry in located])
    return tuple(
        PlannedFile(
            ordinal=ordinal,
            path=path,
            partition=entry.partition.to_dict(),
            row_count=entry.file.row_count,
            size=entry.file.file_size,
            ranges=ranges_of(entry),
            deleted_row_count=table.files.deleted_row_count(entry.file),
        )
        for ordinal, (path, entry) in enumerate(located)
    )


def _require_unique_names(handle: TableHandle, located: tuple[tuple[str, Any], ...]) -> None:
    counts = Counter(entry.file.file_name for _, entry in located)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise NotSupportedError(
            f"{handle.name} has several data files of the name {repeated[0]}.",
            "Compact the table fully with Paimon's own engines first.",
        )


def _planned_sections(table: PinnedTable, keyed: KeyedTable) -> tuple[PlannedFile, ...]:
    """All units, by ordinal."""
    records_deletes = keyed.producer != "none"
    ranges_of = ranges_of_files(table, [entry for _, entry in table.files.located_entries])
    return tuple(
        _planned(
            table,
            _SectionRanges(table, keyed, table.files.unit_entries(ordinal), ranges_of),
            ordinal,
            records_deletes=records_deletes,
        )
        for ordinal in range(len(table.files.units))
    )


def _described_records(
    table: PinnedTable, keyed: KeyedTable, entry: Any, ordinal: int
) -> PlannedFile:
    """The records of one file, only for their partition and keys."""
    return PlannedFile(
        ordinal=ordinal,
        path=entry.file.file_name,
        partition=entry.partition.to_dict(),
        row_count=entry.file.row_count,
        size=entry.file.file_size,
        ranges={keyed.key[0]: _key_range(table, keyed.key[0], [entry])},
        has_exact_count=False,
    )


def _planned(
    table: PinnedTable, ranges: _SectionRanges, ordinal: int, *, records_deletes: bool
) -> PlannedFile:
    unit, entries = table.files.units[ordinal], table.files.unit_entries(ordinal)
    vectors = (table.files.vectors.get(entry.file.file_name) for entry in entries)
    rows = 0 if unit.is_pending else sum(entry.file.row_count for entry in entries)
    return PlannedFile(
        ordinal=ordinal,
        path=table.files.located_entries[unit.files[0]][0],
        partition=entries[0].partition.to_dict(),
        row_count=rows,
        size=sum(entry.file.file_size for entry in entries),
        ranges={} if unit.is_pending else ranges,
        deleted_row_count=sum(each.cardinality for each in vectors if each is not None),
        has_exact_count=unit.is_pending or ranges.are_of_one_file,
        records_deletes=records_deletes,
    )


class _SectionRanges(Mapping[str, ColumnRange]):
    """The statistics of a section, computed only for the columns that are looked up.

    Where records merge, a value is one of some record, so that bounds over all files are bounds,
    but NULLs are not counted. Aggregates have no bounds.
    """

    __slots__ = ("_entries", "_keyed", "_ranges_of", "_table", "are_of_one_file")

    def __init__(
        self,
        table: PinnedTable,
        keyed: KeyedTable,
        entries: Sequence[Any],
        ranges_of: Callable[[Any], FileRanges],
    ) -> None:
        self._table = table
        self._keyed = keyed
        self._entries = entries
        self._ranges_of = ranges_of
        # A file without delete records: its records are the rows.
        self.are_of_one_file = len(entries) == 1 and entries[0].file.delete_row_count == 0

    def __getitem__(self, column: str) -> ColumnRange:
        if column == self._keyed.key[0]:
            return _key_range(self._table, column, self._entries)
        ranges = [
            self._ranges_of(entry)[column].believed(entry.file.row_count) for entry in self._entries
        ]
        if self.are_of_one_file:
            return ranges[0]
        is_aggregate = self._keyed.engine.kind == "aggregation"
        is_record = column in self._table.schema.primary_keys or not is_aggregate
        if not is_record or any(each.minimum is None for each in ranges):
            return ColumnRange(None, None, None)
        low, high = min(each.minimum for each in ranges), max(each.maximum for each in ranges)
        return ColumnRange(low, high, None)

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self._table.schema.columns)

    def __len__(self) -> int:
        return len(self._table.schema.columns)


def _key_range(table: PinnedTable, column: str, entries: Sequence[Any]) -> ColumnRange:
    """The range of ``column``, the first of the key."""
    kind = next(each.type for each in table.schema.columns if each.name == column)
    ranges = [key_range(entry) for entry in entries]
    if not has_bounds(kind) or any(each.first > each.last for each in ranges):
        return ColumnRange(None, None, 0)
    low, high = min(each.first for each in ranges), max(each.last for each in ranges)
    return ColumnRange(low[0], high[0], 0)


def _planned_ranges(table: PinnedTable) -> tuple[PlannedFile, ...]:
    """All ranges, by ordinal; the path is that of the anchor.

    Raises:
        CatalogError: METADATA_UNREADABLE; names the files.
        ValueError: a deletion vector deletes more rows than its range has.
    """
    ranges_of = ranges_of_files(table, [entry for _, entry in table.files.located_entries])
    ranges = []
    for ordinal, unit in enumerate(table.files.units):
        entries = table.files.unit_entries(ordinal)
        planned = described_range(table, entries, ordinal, ranges_of)
        path, anchor = table.files.located_entries[unit.files[0]]
        deleted = table.files.deleted_row_count(anchor.file)
        ranges.append(replace(planned, path=path, deleted_row_count=deleted))
    return tuple(ranges)


def described_range(
    table: PinnedTable,
    entries: Sequence[Any],
    ordinal: int,
    ranges_of: Callable[[Any], FileRanges],
) -> PlannedFile:
    """A range with the files of ``entries``, the newest last, for its partition and statistics."""
    anchor = entries[0]
    return PlannedFile(
        ordinal=ordinal,
        path=anchor.file.file_name,
        partition=anchor.partition.to_dict(),
        row_count=anchor.file.row_count,
        size=sum(entry.file.file_size for entry in entries),
        ranges=_RangeStatistics(table, entries, ranges_of),
    )


class _RangeStatistics(Mapping[str, ColumnRange]):
    """The statistics of a range: of each column, those of the file with its values.

    A column that no file has is NULL in all rows.
    """

    __slots__ = ("_entries", "_ranges_of", "_table")

    def __init__(
        self,
        table: PinnedTable,
        entries: Sequence[Any],
        ranges_of: Callable[[Any], FileRanges],
    ) -> None:
        self._table = table
        self._entries = entries
        self._ranges_of = ranges_of

    def __getitem__(self, column: str) -> ColumnRange:
        for entry in reversed(self._entries):
            if column in self._table.columns.file_columns.held(entry):
                return self._ranges_of(entry)[column]
        if column not in list(self):
            raise KeyError(column)
        return ColumnRange(None, None, self._entries[0].file.row_count)

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self._table.schema.columns)

    def __len__(self) -> int:
        return len(self._table.schema.columns)


def scanned_range(table: PinnedTable, ordinal: int) -> ScannedRange:
    """A range as executors read it."""
    anchor = table.files.unit_entries(ordinal)[0].file
    return ScannedRange(
        ordinal,
        range_files(table, ordinal),
        table.files.vectors.get(anchor.file_name),
        anchor.row_count,
    )


def range_files(table: PinnedTable, ordinal: int) -> tuple[RangeFile, ...]:
    """The files of a range, from the newest to the anchor."""
    located = [
        table.files.located_entries[index] for index in reversed(table.files.units[ordinal].files)
    ]
    return tuple(
        RangeFile(path, table.columns.mapped_schema(entry), table.columns.file_columns.held(entry))
        for path, entry in located
    )


def run_files(table: PinnedTable, ordinal: int) -> tuple[RunFile, ...]:
    """The files of a unit, in the order of their index in it; none that is not visible yet."""
    unit = table.files.units[ordinal]
    return () if unit.is_pending else tuple(run_file(table, index) for index in unit.files)


def run_file(table: PinnedTable, index: int) -> RunFile:
    """The file with an index in ``StoredFiles.located_entries``."""
    path, entry = table.files.located_entries[index]
    return RunFile(
        path=path,
        level=entry.file.level,
        first=key_range(entry).first,
        row_count=entry.file.row_count,
        delete_count=entry.file.delete_row_count,
        vector=table.files.vectors.get(entry.file.file_name),
        schema_id=table.columns.mapped_schema(entry),
    )


def keyed_schema(table: PinnedTable, keyed: KeyedTable) -> KeyedSchema:
    """How executors read and write rows of a table with a primary key."""
    return KeyedSchema(
        columns=table_schema.arrow_schema(table.table),
        key=keyed.key,
        engine=keyed.engine,
        thin=table.options.get(_THIN_OPTION, "false").lower() == "true",
        looks_up=keyed.looks_up,
    )


def section_reader(
    table: PinnedTable, keyed: KeyedTable, filesystem: pafs.FileSystem
) -> SectionReader:
    """The reader of the table's sections."""
    return SectionReader(filesystem, keyed_schema(table, keyed), table.files.mappings)
