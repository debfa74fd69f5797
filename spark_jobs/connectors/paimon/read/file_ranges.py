"""The statistics of data files, in the columns and types of today's schema. Driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.paimon.library import data_files
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.spi.tables import ColumnRange


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


def ranges_of_files(table: PinnedTable, entries: Sequence[Any]) -> Callable[[Any], FileRanges]:
    """A function that gives the statistics of each of ``entries``."""
    columns = {column.name: has_bounds(column.type) for column in table.schema.columns}
    schemas = {entry.file.schema_id for entry in entries}
    mappings = {each: _mappings_by_name(table, each) for each in schemas}
    return lambda entry: FileRanges(entry, columns, mappings[entry.file.schema_id])


def _mappings_by_name(table: PinnedTable, schema_id: int) -> Mapping[str, FieldMapping] | None:
    mappings = table.columns.columns_in(schema_id)
    return None if mappings is None else {each.field.name: each for each in mappings}


def _as_decimal(bound: Any) -> Decimal | None:
    return None if bound is None else Decimal(bound)


def has_bounds(paimon_type: Any) -> bool:
    """Whether bounds are usable; those of timestamps depend on the writer."""
    return isinstance(paimon_type, str) and not paimon_type.upper().startswith("TIMESTAMP")
