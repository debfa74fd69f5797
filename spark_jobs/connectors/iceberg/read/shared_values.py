"""Whether two files may have a value in common, by their metrics. Driver only.

Follows ``canContainEqDeletesForFile`` in Iceberg's ``DeleteFileIndex``.
"""

from __future__ import annotations

from struct import error as StructError
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import IcebergField
from spark_jobs.connectors.iceberg.format.values import bound
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry

# Types whose bounds are ordered here as in Java.
_ORDERED: Final = ("int", "long", "date", "timestamp", "timestamptz", "string")


def may_share_values(column: IcebergField, one: ManifestEntry, other: ManifestEntry) -> bool:
    """False if no value of ``column`` in one file, NULL included, is in the other one."""
    if _may_hold_null(column, one) and _may_hold_null(column, other):
        return True
    for some, rest in ((one, other), (other, one)):
        if _is_null_alone(column, some) and not _may_hold_null(column, rest):
            return False
    first, second = _bounds(column, one), _bounds(column, other)
    if first is None or second is None:
        return True
    return bool(first[0] <= second[1] and second[0] <= first[1])


def _may_hold_null(column: IcebergField, file: ManifestEntry) -> bool:
    return file.by_id("null_value_counts").get(column.id) != 0


def _is_null_alone(column: IcebergField, file: ManifestEntry) -> bool:
    nulls = file.by_id("null_value_counts").get(column.id)
    return nulls is not None and nulls == file.by_id("value_counts").get(column.id)


def _bounds(column: IcebergField, file: ManifestEntry) -> tuple[Any, Any] | None:
    """The least and the greatest value; None if they prove nothing."""
    if column.type.name not in _ORDERED:
        return None
    low, high = (file.by_id(name).get(column.id) for name in ("lower_bounds", "upper_bounds"))
    if low is None or high is None:
        return None
    try:
        found = bound(column.type, low), bound(column.type, high)
    except (TypeError, ValueError, StructError):
        return None
    return found if found[0] <= found[1] else None
