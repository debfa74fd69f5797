"""The row-id ranges of a table with data evolution as units of reading. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_jobs.connectors.paimon.read.file_ranges import FileRanges, ranges_of_files
from spark_jobs.connectors.paimon.read.range_scan import RangeFile, ScannedRange
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.spi.tables import ColumnRange, PlannedFile


def planned_ranges(table: PinnedTable) -> tuple[PlannedFile, ...]:
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
        ranges=RangeStatistics(table, entries, ranges_of),
    )


class RangeStatistics(Mapping[str, ColumnRange]):
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
