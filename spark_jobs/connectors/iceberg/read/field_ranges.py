"""What is known of the partitions of rows whose file is not of the current spec. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import IcebergType, arrow_type
from spark_jobs.connectors.iceberg.format.transforms import (
    FLOATING,
    field_value,
    field_values,
    transformed,
)
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.formats.iceberg.transforms import VOID, named
from spark_jobs.spi.tables import ColumnRange

_UNITS: Final = ("year", "month", "day", "hour")
_UNKNOWN: Final = ColumnRange(None, None, None)


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
