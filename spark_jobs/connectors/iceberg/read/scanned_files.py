"""What executors need to read the live rows of a data file. Driver only.

Which deletes by value may be about a file follows ``canContainEqDeletesForFile`` in Iceberg's
``DeleteFileIndex``.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as StructError
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes, DeleteFile
from spark_jobs.connectors.iceberg.format.equality import DeletesByValue, EqualityDeletes, KeyFile
from spark_jobs.connectors.iceberg.format.file_columns import Constants
from spark_jobs.connectors.iceberg.format.row_lineage import RowLineage
from spark_jobs.connectors.iceberg.format.schema import IcebergField, arrow_type
from spark_jobs.connectors.iceberg.format.values import bound, partition_value
from spark_jobs.connectors.iceberg.read.arrow_scan import ScannedFile
from spark_jobs.connectors.iceberg.table.live_files import LiveFile
from spark_jobs.connectors.iceberg.table.manifests import ManifestEntry
from spark_jobs.connectors.iceberg.table.metadata_errors import reading_metadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.table.refusals import refuse_file
from spark_jobs.contract.request import TableName

# Types whose bounds are ordered here as in Java.
_ORDERED: Final = ("int", "long", "date", "timestamp", "timestamptz", "string")


def scanned_file(table: PinnedTable, name: TableName, ordinal: int) -> ScannedFile:
    """The data file ``ordinal`` of the pinned snapshot.

    Raises:
        NotSupportedError: it is in another format than parquet, or has deletes that cannot be read
            here.
        CatalogError: METADATA_UNREADABLE.
    """
    return scanned(table, name, ordinal, table.files[ordinal])


def scanned(table: PinnedTable, name: TableName, ordinal: int, file: LiveFile) -> ScannedFile:
    """The same of a ``file`` that is known."""
    with reading_metadata(table.place):
        refuse_file(name, table, file)
        entry, constants = file.entry, dict(_constants(table, file))
        deletes = tuple(delete_file(table, each) for each in file.deletes)
        by_value = _by_value(table, file, constants)
        of_file = DataFileDeletes(ordinal, entry.path, entry.row_count, deletes, by_value)
        return ScannedFile(file.path, of_file, constants, entry.first_row_id)


def row_lineage(table: PinnedTable, file: LiveFile) -> RowLineage | None:
    """How the ids of a file's rows are known; None: they have none.

    Raises:
        ValueError: other rows of the snapshot have ids.
    """
    if not table.has_lineage:
        return None
    first, entry = file.entry.first_row_id, file.entry
    if first is None:
        raise ValueError(f"the rows of {entry.path} have no ids, as rows of version 3 must have")
    return RowLineage(first, entry.sequence_number)


def delete_file(table: PinnedTable, entry: ManifestEntry) -> DeleteFile:
    """A file of position deletes, or a vector; raises ValueError if its place is not told."""
    path = table.storage.path(entry.path)
    if not entry.is_vector:
        return DeleteFile(path)
    offset, length = (entry.record.get(f"content_{name}") for name in ("offset", "size_in_bytes"))
    if type(offset) is not int or type(length) is not int:
        raise ValueError(f"the deletion vector in {entry.path} has no place")
    return DeleteFile(path, offset, length, entry.row_count)


def _by_value(table: PinnedTable, file: LiveFile, constants: Constants) -> DeletesByValue | None:
    """The equality deletes for a file; None if none can be about one of its rows."""
    by_columns: dict[tuple[IcebergField, ...], list[KeyFile]] = {}
    for equality_delete in file.equality_deletes:
        columns = tuple(table.known_fields[number] for number in equality_delete.equality_ids)
        if all(_may_share_values(column, file.entry, equality_delete) for column in columns):
            key_file = KeyFile(table.storage.path(equality_delete.path), equality_delete.row_count)
            by_columns.setdefault(columns, []).append(key_file)
    if not by_columns:
        return None
    deletes = tuple(EqualityDeletes(columns, tuple(files)) for columns, files in by_columns.items())
    return DeletesByValue(file.path, table.name_mapping, constants, deletes)


def _constants(table: PinnedTable, file: LiveFile) -> Iterator[tuple[int, Any]]:
    """The values of identity fields by column, which some files do not have."""
    for part in table.specs[file.entry.spec_id]:
        if part.transform == "identity" and part.source is not None:
            kind = part.source.type
            value = partition_value(kind, file.entry.partition.get(part.id))
            yield part.source.id, pa.scalar(value, arrow_type(kind))


def _may_share_values(column: IcebergField, one: ManifestEntry, other: ManifestEntry) -> bool:
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
