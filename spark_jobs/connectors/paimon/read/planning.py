"""The data files of a pinned snapshot, with partition values and column statistics. Driver only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.format.types import has_nanoseconds
from spark_jobs.connectors.paimon.library import data_files
from spark_jobs.connectors.paimon.table.file_refusals import refuse_file, refuse_indexes
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.tables import ColumnRange, PlannedFile, TableHandle


class FileRanges(Mapping[str, ColumnRange]):
    """The statistics of one file, decoded only for the columns that are looked up.

    ``mappings`` are by column, for a file that was written with an older schema.
    """

    __slots__ = ("_columns", "_entry", "_mappings")

    def __init__(
        self, entry: Any, columns: Mapping[str, bool], mappings: Mapping[str, FieldMapping] | None
    ) -> None:
        self._entry = entry
        self._columns = columns
        self._mappings = mappings

    def __getitem__(self, column: str) -> ColumnRange:
        has_bounds = self._columns[column]
        if self._mappings is None:
            minimum, maximum, null_count = data_files.column_range(self._entry, column)
        else:
            minimum, maximum, null_count = self._mapped_range(self._mappings[column])
        if not has_bounds or minimum is None or maximum is None:
            return ColumnRange(None, None, null_count)
        return ColumnRange(minimum, maximum, null_count)

    def _mapped_range(self, mapping: FieldMapping) -> tuple[Any, Any, int | None]:
        if mapping.source is None:
            return None, None, self._entry.file.row_count
        minimum, maximum, null_count = data_files.column_range(self._entry, mapping.source.name)
        if pa.types.is_decimal(mapping.field.type):
            minimum, maximum = _as_decimal(minimum), _as_decimal(maximum)
        if mapping.padded_to and maximum is not None:
            # Padding makes values larger, so that the minimum remains a bound.
            fill = " " if isinstance(maximum, str) else b"\0"
            maximum = maximum.ljust(mapping.padded_to, fill)
        return minimum, maximum, null_count

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
    for _, entry in table.located_entries:
        refuse_file(table, handle.name, entry)
    _require_unique_names(handle, table.located_entries)
    return _described(table, table.located_entries)


def described_files(table: PinnedTable, entries: Sequence[Any]) -> tuple[PlannedFile, ...]:
    """Files of later snapshots, only for their partitions and statistics."""
    return _described(table, [(entry.file.file_name, entry) for entry in entries])


def _described(table: PinnedTable, located: Sequence[tuple[str, Any]]) -> tuple[PlannedFile, ...]:
    columns = {column.name: _has_bounds(column.type) for column in table.schema.columns}
    schemas = {entry.file.schema_id for _, entry in located}
    mappings = {each: _mappings_by_name(table, each) for each in schemas}
    return tuple(
        PlannedFile(
            ordinal=ordinal,
            path=path,
            partition=entry.partition.to_dict(),
            row_count=entry.file.row_count,
            size=entry.file.file_size,
            ranges=FileRanges(entry, columns, mappings[entry.file.schema_id]),
            deleted_row_count=_deleted_row_count(table, entry.file),
        )
        for ordinal, (path, entry) in enumerate(located)
    )


def _mappings_by_name(table: PinnedTable, schema_id: int) -> Mapping[str, FieldMapping] | None:
    mappings = table.columns_in(schema_id)
    return None if mappings is None else {each.field.name: each for each in mappings}


def _as_decimal(bound: Any) -> Decimal | None:
    return None if bound is None else Decimal(bound)


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
