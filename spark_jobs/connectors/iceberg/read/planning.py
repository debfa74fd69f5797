"""The data files of a pinned snapshot, with the bounds of their columns and partitions.

Driver only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from struct import error as StructError
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import IcebergField, IcebergType, arrow_type
from spark_jobs.connectors.iceberg.format.transforms import (
    FLOATING,
    field_value,
    field_values,
    transformed,
)
from spark_jobs.connectors.iceberg.format.values import bound
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart, partition_ranges
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.iceberg.transforms import VOID, is_known, named
from spark_jobs.spi.tables import ColumnRange, PlannedFile

_UNKNOWN = ColumnRange(None, None, None)
_UNITS: Final = ("year", "month", "day", "hour")


def plan_files(table: PinnedTable) -> tuple[PlannedFile, ...]:
    """All data files, ordered by path.

    Raises:
        CatalogError: METADATA_UNREADABLE.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: they are encrypted, or on other storage than the table.
    """
    with reading_metadata(table.place):
        return tuple(_planned(table, ordinal, file) for ordinal, file in enumerate(table.files))


def described_files(
    table: PinnedTable, entries: Sequence[ManifestEntry]
) -> tuple[PlannedFile, ...]:
    """Files of later snapshots, only for their partitions and bounds.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(table.place):
        return tuple(_described(table, number, each) for number, each in enumerate(entries))


def _described(table: PinnedTable, ordinal: int, entry: ManifestEntry) -> PlannedFile:
    ranges = FileRanges(table, entry)
    return PlannedFile(
        ordinal=ordinal,
        path=entry.path,
        partition=_partition(table, entry),
        row_count=entry.row_count,
        size=entry.size,
        ranges=ranges,
        field_ranges=FieldRanges(table, entry, ranges),
    )


def _planned(table: PinnedTable, ordinal: int, file: LiveFile) -> PlannedFile:
    vector = file.vector
    if vector is not None and vector.row_count > file.entry.row_count:
        raise ValueError(
            f"the deletion vector of {file.path} deletes {vector.row_count} rows of "
            f"{file.entry.row_count}"
        )
    return replace(
        _described(table, ordinal, file.entry),
        path=file.path,
        deleted_row_count=0 if vector is None else vector.row_count,
        # Files with deleted positions may repeat each other.
        has_exact_count=not file.equality_deletes and (vector is not None or not file.deletes),
    )


def named_partition(
    table: PinnedTable, spec_id: int, partition: Mapping[int, Any]
) -> dict[str, Any]:
    """The values of a ``partition`` by field, as people write them; it has Avro's by id.

    Raises:
        TypeError, ValueError: a value is not valid for its type.
    """
    return {
        part.name: field_value(part.source.type, part.transform, partition.get(part.id))
        for part in table.specs[spec_id]
        if part.source is not None and is_known(part.source.type.name, part.transform)
        if part.transform != VOID
    }


def _partition(table: PinnedTable, entry: ManifestEntry) -> dict[str, Any]:
    """The partition of a file of the current spec, without values that Python cannot hold."""
    if entry.spec_id != table.metadata.default_spec_id:
        return {}
    found = named_partition(table, entry.spec_id, entry.partition)
    ids = {part.name: part.id for part in table.specs[entry.spec_id]}
    return {
        name: value
        for name, value in found.items()
        if value is not None or entry.partition.get(ids[name]) is None
    }


class FileRanges(Mapping[str, ColumnRange]):
    """The bounds of one file, from its metrics and its partition; decoded when they are needed."""

    __slots__ = ("_entry", "_of_partition", "_table")

    def __init__(self, table: PinnedTable, entry: ManifestEntry) -> None:
        self._table = table
        self._entry = entry
        self._of_partition: dict[str, ColumnRange] = {}
        parts = table.specs[entry.spec_id]
        for name, known in partition_ranges(parts, entry.partition, entry.row_count):
            before = self._of_partition.get(name)
            self._of_partition[name] = known if before is None else before.narrowed(known)

    def __getitem__(self, column: str) -> ColumnRange:
        field = next((each for each in self._table.columns if each.name == column), None)
        if field is None:
            raise KeyError(column)
        try:
            found = self._measured(field)
        except (TypeError, ValueError, StructError) as error:
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"The metadata of {self._table.place} cannot be read: a bound of {column} in "
                f"{self._entry.path} is not valid: {error}",
                "Rewrite the file with the engine that made it.",
            ) from error
        known = self._of_partition.get(column)
        return found if known is None else found.narrowed(known)

    def _measured(self, field: IcebergField) -> ColumnRange:
        if not field.type.is_primitive:
            return _UNKNOWN
        low, high = (self._bound(field, name) for name in ("lower_bounds", "upper_bounds"))
        return ColumnRange(low, high, self._entry.by_id("null_value_counts").get(field.id))

    def _bound(self, field: IcebergField, name: str) -> Any:
        data = self._entry.by_id(name).get(field.id)
        return None if data is None else bound(field.type, data)

    def __iter__(self) -> Iterator[str]:
        return iter(each.name for each in self._table.columns)

    def __len__(self) -> int:
        return len(self._table.columns)


class FieldRanges(Mapping[str, ColumnRange]):
    """Bounds of the values that the rows of a file have in the fields of the current spec.

    They follow from the same field of the file's own spec, or from the ``ranges`` of its columns.
    Each is computed when it is needed.
    """

    __slots__ = ("_entry", "_ranges", "_table")

    def __init__(
        self, table: PinnedTable, entry: ManifestEntry, ranges: Mapping[str, ColumnRange]
    ) -> None:
        self._table = table
        self._entry = entry
        self._ranges = ranges

    def __getitem__(self, name: str) -> ColumnRange:
        part = next((each for each in self._parts if each.name == name), None)
        if part is None or part.source is None:
            raise KeyError(name)
        own = self._of_own_field(part)
        return self._of_source(part) if own is None else own

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in self._parts if each.source is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def _parts(self) -> tuple[PartitionPart, ...]:
        return self._table.specs[self._table.metadata.default_spec_id]

    def _of_own_field(self, part: PartitionPart) -> ColumnRange | None:
        """What the file's own spec says, if it has the same field."""
        assert part.source is not None  # noqa: S101 - see __getitem__
        for own in self._table.specs[self._entry.spec_id]:
            source_id = None if own.source is None else own.source.id
            is_same = (source_id, own.transform) == (part.source.id, part.transform)
            if not is_same or own.id not in self._entry.partition:
                continue
            raw = self._entry.partition[own.id]
            if raw is None:
                return ColumnRange(None, None, self._entry.row_count)
            # Old writers rounded times before 1970 up.
            if own.transform in _UNITS and raw <= 0:
                return None
            value = field_value(part.source.type, part.transform, raw)
            return None if value is None else ColumnRange(value, value, 0)
        return None

    def _of_source(self, part: PartitionPart) -> ColumnRange:
        source = part.source
        assert source is not None  # noqa: S101 - see __getitem__
        if part.transform == VOID:
            return _UNKNOWN
        known = self._ranges[source.name].believed(self._entry.row_count)
        nulls = 0 if source.required else known.null_count
        low, high = known.minimum, known.maximum
        if low is None or high is None or source.type.name in (*FLOATING, "binary"):
            return ColumnRange(None, None, nulls)
        return ColumnRange(*_transformed(source.type, part.transform, low, high), nulls)


def _transformed(kind: IcebergType, transform: str, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds of transformed values from those of values."""
    name, _ = named(transform)
    if name == "bucket" and low != high:
        return None, None
    array = pa.array([low, high], arrow_type(kind))
    least, most = field_values(transformed(array, kind, transform), transform).to_pylist()
    # Below the least number, truncation wraps around.
    is_wrapped = name == "truncate" and kind.name in ("int", "long") and least > low
    return (None, None) if is_wrapped else (least, most)
