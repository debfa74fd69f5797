"""The sections of a table with a primary key as units of reading. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from spark_jobs.connectors.paimon.library.key_ranges import key_range
from spark_jobs.connectors.paimon.read.file_ranges import (
    FileRanges,
    has_bounds,
    ranges_of_files,
)
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.spi.tables import ColumnRange, PlannedFile


def planned_sections(table: PinnedTable, keyed: KeyedTable) -> tuple[PlannedFile, ...]:
    """All units, by ordinal."""
    records_deletes = keyed.producer != "none"
    ranges_of = ranges_of_files(table, [entry for _, entry in table.files.located_entries])
    return tuple(
        _planned(
            table,
            SectionRanges(table, keyed, table.files.unit_entries(ordinal), ranges_of),
            ordinal,
            records_deletes=records_deletes,
        )
        for ordinal in range(len(table.files.units))
    )


def described_records(
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
    table: PinnedTable, ranges: SectionRanges, ordinal: int, *, records_deletes: bool
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


class SectionRanges(Mapping[str, ColumnRange]):
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
