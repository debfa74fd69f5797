"""What the engine learns about a table from a connector: schema, pinned snapshot, planned files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spark_jobs.contract.request import TableName
from spark_jobs.spi.alterations import SchemaChange


class RowChangeParadigm(Enum):
    """How a connector changes rows (Trino's ``RowChangeParadigm``).

    ``CHANGE_ONLY_UPDATED_COLUMNS``: an UPDATE reaches the sink as one row with the columns that it
    assigns.
    ``DELETE_ROW_AND_INSERT_ROW``: an UPDATE becomes a DELETE row and an INSERT row, the latter with
    all columns.
    """

    CHANGE_ONLY_UPDATED_COLUMNS = "change_only_updated_columns"
    DELETE_ROW_AND_INSERT_ROW = "delete_row_and_insert_row"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    ``type`` is a Spark SQL type in DDL form, including NOT NULL of nested fields. ``default`` is a
    Spark SQL expression or None.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionField:
    """What a table's partitions are made of: ``type`` is that of its values, in Spark's DDL form.

    They are those of the column ``source``, or ``is_computed`` from it, as the day of a timestamp.
    """

    name: str
    type: str
    source: str
    is_computed: bool = False

    @property
    def column(self) -> str | None:
        """The column that has the same values; None if they are computed."""
        return None if self.is_computed else self.source


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table pinned at one snapshot. Driver only.

    ``snapshot_id`` is None if the table has no snapshot. ``native`` is the connector's own object.
    ``schema_changes``: those that ``columns`` has already, but the stored table only once the write
    is published. ``key_columns`` are the primary key: no row has NULL there, no two rows have the
    same values, and an UPDATE keeps them. ``fixed_columns``: others that an UPDATE can only keep.
    ``has_identities``: a row has an identity that an UPDATE keeps wherever it stores the row.
    ``partition_keys`` are columns by which all files are partitioned. A table for which that does
    not hold has none, and ``partition_fields`` instead: statements that replace partitions go by
    them, others only by the ranges of files.
    ``snapshot_mark`` is the pinned snapshot's alone, also after a rollback, or in a table that was
    made anew, where ids occur again. ``schema_mark`` is that of the stored columns and partitions:
    every change of them leads to another one.
    ``created_by``: the operation that created the table for its rows, if the table tells one.
    ``opaque_columns`` are further ones, of types that Spark does not have, with the format's own
    names of these: no statement uses them, rows keep their values there, and new rows have NULL.
    """

    name: TableName
    columns: tuple[Column, ...]
    partition_keys: tuple[str, ...]
    snapshot_id: int | None
    native: Any = field(repr=False, compare=False, default=None)
    schema_changes: tuple[SchemaChange, ...] = ()
    key_columns: tuple[str, ...] = ()
    fixed_columns: tuple[str, ...] = ()
    has_identities: bool = False
    partition_fields: tuple[PartitionField, ...] = ()
    opaque_columns: tuple[Column, ...] = ()
    created_by: str | None = None
    snapshot_mark: str = ""
    schema_mark: str = ""

    @property
    def partitioned_by(self) -> tuple[PartitionField, ...]:
        """The fields of its partitions, in order; insert layouts begin to cluster by them."""
        types = {column.name: column.type for column in self.columns}
        keys = tuple(PartitionField(name, types[name], name) for name in self.partition_keys)
        return keys or self.partition_fields

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of all columns, in the table's order."""
        return tuple(column.name for column in self.columns)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """The names of the columns that ``schema_changes`` add."""
        added = [each.path for each in self.schema_changes if each.before is None]
        return tuple(path[0] for path in added if len(path) == 1)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Statistics of one column in one file, as Python values; None where unknown.

    ``minimum`` and ``maximum`` are bounds: every non-NULL, non-NaN value lies between them. The
    connector leaves out bounds that it cannot trust. Those of TIMESTAMP have a time zone.
    """

    minimum: Any
    maximum: Any
    null_count: int | None

    def narrowed(self, other: ColumnRange) -> ColumnRange:
        """What is known if both are true."""
        lows = [each.minimum for each in (self, other) if each.minimum is not None]
        highs = [each.maximum for each in (self, other) if each.maximum is not None]
        nulls = other.null_count if self.null_count is None else self.null_count
        return ColumnRange(max(lows, default=None), min(highs, default=None), nulls)

    def believed(self, row_count: int) -> ColumnRange:
        """Itself, or nothing if it contradicts itself or the number of rows."""
        low, high, nulls = self.minimum, self.maximum, self.null_count
        is_reversed = low is not None and high is not None and not low <= high
        is_miscounted = nulls is not None and not 0 <= nulls <= row_count
        is_empty = nulls == row_count and (low is not None or high is not None)
        if is_reversed or is_miscounted or is_empty:
            return ColumnRange(None, None, None)
        return self


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A unit of reading of the pinned snapshot: a data file, or several that must be merged.

    ``ordinal`` identifies the unit in row ids and fragments of this statement, even after pruning.
    ``path`` is that of its first file. ``partition`` maps partition fields to Python values; a file
    whose values of the table's fields are not known, as with older partitions, lacks them, and has
    the bounds of its rows' values in ``field_ranges``: none of floating ones, unless all are equal.
    ``size`` is in bytes. ``row_count`` and the statistics ``ranges`` include the
    ``deleted_row_count`` rows that are marked as deleted. Without ``has_exact_count``,
    ``row_count`` is only an upper bound: rows are counted by reading them. ``records_deletes``: a
    DELETE reads the rows even if it deletes all of them, because the connector records each.
    """

    ordinal: int
    path: str
    partition: Mapping[str, Any]
    row_count: int
    size: int
    ranges: Mapping[str, ColumnRange]
    deleted_row_count: int = 0
    has_exact_count: bool = True
    records_deletes: bool = False
    field_ranges: Mapping[str, ColumnRange] = field(default_factory=dict)

    def known(self, column: str) -> ColumnRange:
        """What statistics prove of a column; nothing if there are none, or impossible ones."""
        found = self.ranges.get(column)
        return ColumnRange(None, None, None) if found is None else found.believed(self.row_count)

    @property
    def live_row_count(self) -> int:
        """The number of rows that are not marked as deleted; at most, without an exact count."""
        return self.row_count - self.deleted_row_count


def row_bytes_of(files: Sequence[PlannedFile]) -> float:
    """The average size of a row of ``files`` in bytes; 0 without rows."""
    rows = sum(file.row_count for file in files)
    return sum(file.size for file in files) / rows if rows else 0.0


@dataclass(frozen=True, slots=True)
class CommittedSnapshot:
    """A snapshot that an operation committed.

    ``properties`` are those that the operation recorded in the snapshot.
    """

    snapshot_id: int
    properties: Mapping[str, str]
