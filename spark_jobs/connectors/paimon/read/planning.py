"""The data files of a pinned snapshot, with partition values and column statistics. Driver only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_jobs.connectors.paimon.format.types import has_nanoseconds
from spark_jobs.connectors.paimon.library import data_files, table_schema
from spark_jobs.connectors.paimon.table.file_refusals import refuse_file, refuse_indexes
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import ColumnRange, PlannedFile, TableHandle


class FileRanges(Mapping[str, ColumnRange]):
    """The statistics of one file, decoded only for the columns that are looked up."""

    __slots__ = ("_columns", "_entry")

    def __init__(self, entry: Any, columns: Mapping[str, bool]) -> None:
        self._entry = entry
        self._columns = columns

    def __getitem__(self, column: str) -> ColumnRange:
        has_bounds = self._columns[column]
        minimum, maximum, null_count = data_files.column_range(self._entry, column)
        if not has_bounds or minimum is None or maximum is None:
            return ColumnRange(None, None, null_count)
        return ColumnRange(minimum, maximum, null_count)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def plan_files(handle: TableHandle) -> tuple[PlannedFile, ...]:
    """All data files, ordered by path; the index is the ordinal.

    Raises:
        NotSupportedError: a file cannot be read correctly here; gives the reason.
        ValueError: a deletion vector deletes more rows than its file has.
    """
    table = pinned_table(handle)
    refuse_indexes(table, handle.name)
    schema_id = table_schema.schema_id(table.table)
    older = {entry.file.schema_id for _, entry in table.located_entries} - {schema_id}
    differing = {each for each in older if not table_schema.has_same_columns(table.table, each)}
    for _, entry in table.located_entries:
        refuse_file(table, handle.name, entry, schema_id, differing)
    _require_unique_names(handle, table.located_entries)
    return _described(table, table.located_entries)


def described_files(table: PinnedTable, entries: Sequence[Any]) -> tuple[PlannedFile, ...]:
    """Files of later snapshots, only for their partitions and statistics."""
    return _described(table, [(entry.file.file_name, entry) for entry in entries])


def _described(table: PinnedTable, located: Sequence[tuple[str, Any]]) -> tuple[PlannedFile, ...]:
    columns = {column.name: _has_bounds(column.type) for column in table.schema.columns}
    return tuple(
        PlannedFile(
            ordinal=ordinal,
            path=path,
            partition=entry.partition.to_dict(),
            row_count=entry.file.row_count,
            size=entry.file.file_size,
            ranges=FileRanges(entry, columns),
            deleted_row_count=_deleted_row_count(table, entry.file),
        )
        for ordinal, (path, entry) in enumerate(located)
    )


def _deleted_row_count(table: PinnedTable, file: Any) -> int:
    vector = table.vectors.get(file.file_name)
    if vector is None:
        return 0
    if not 0 <= vector.cardinality <= file.row_count:
        raise ValueError(
            f"the deletion vector of {file.file_name} deletes {vector.cardinality} rows of "
            f"{file.row_count}"
        )
    return vector.cardinality


def _has_bounds(paimon_type: Any) -> bool:
    """Whether bounds are usable; for timestamps finer than Python's, they would be too narrow."""
    return isinstance(paimon_type, str) and not has_nanoseconds(paimon_type)


def _require_unique_names(handle: TableHandle, located: tuple[tuple[str, Any], ...]) -> None:
    counts = Counter(entry.file.file_name for _, entry in located)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise NotSupportedError(
            f"{handle.name} has several data files of the name {repeated[0]}.",
            "Compact the table fully with Paimon's own engines first.",
        )
