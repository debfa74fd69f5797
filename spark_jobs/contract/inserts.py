"""Statements that add rows or remove whole partitions, and never change single rows.

A partition spec maps partition columns to constants, each the text of a Spark SQL expression
without columns (``DATE '2026-01-31'``, ``7``, ``NULL``). It is full if it names every partition
column, else partial; a partial one stands for every partition that matches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among, require_column, require_identifier
from spark_jobs.contract.partition_keys import parsed_key

# The property of a table that tells which operation created it, to insert rows there.
CREATED_BY: Final = "merge.created-by"

WhenExists = Literal["fail", "keep", "replace"]
# Prefixes of source columns that stand for DEFAULT. DEFAULT_AS precedes the name of a column that
# is DEFAULT in all rows. DEFAULT_OF precedes the number (from 1) of another column: this boolean
# column marks the rows in which the other one is DEFAULT.
DEFAULT_AS: Final = "__merge_default_as_"
DEFAULT_OF: Final = "__merge_default_of_"
OverwriteMode = Literal["dynamic", "static", "table"]
PartitionSpec = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NewTable:
    """The target of INSERT, which has the columns of its source, all of which may be NULL.

    ``partition_keys``, ``table_options``, ``comment`` and ``format`` are as in ``CreateTableSpec``.
    ``when_exists``: what to do if there is a table that this operation has not created: ``fail``;
    ``keep`` it, and insert nothing; ``replace`` its rows, if all else of it is as asked for.
    """

    partition_keys: tuple[str, ...] = ()
    table_options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    when_exists: WhenExists = "fail"

    def __post_init__(self) -> None:
        choices = get_args(WhenExists)
        require_among(self.when_exists, choices, "when_exists")
        for index, key in enumerate(self.partition_keys):
            parsed_key(key, f"partition_keys[{index}]")
        require(
            CREATED_BY not in self.table_options,
            "table_options",
            f"{CREATED_BY} tells which operation created the table",
            "Leave it out.",
        )


@dataclass(frozen=True, slots=True)
class InsertIntoSpec:
    """``INSERT INTO target PARTITION (partition) (columns) | BY NAME`` the rows of ``source``.

    ``source`` names one of the request's sources. Its columns are matched by position with
    ``columns``, by default the table's columns without those of ``partition``; with ``by_name``,
    they are matched with the table's columns of the same name. ``order_by`` sorts the rows of each
    new file: columns, each optionally followed by ASC or DESC. ``partition_columns`` are partition
    columns that the statement names without a value; they have no effect, but must be right.
    Columns of ``source`` whose names begin with ``DEFAULT_AS`` or ``DEFAULT_OF`` stand for defaults
    of the table. ``schema_evolution``: the table gets the source's columns and nested fields that
    it lacks. ``new_table``: the target is created for these rows.
    """

    source: str
    partition: PartitionSpec = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    by_name: bool = False
    order_by: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    schema_evolution: bool = False
    new_table: NewTable | None = None
    kind: ClassVar[str] = "insert_into"

    def __post_init__(self) -> None:
        _require_rows(self)
        require_partition(self.partition, "partition")
        if self.new_table is not None:
            _require_all_columns(self)
            require(
                self.new_table.when_exists != "replace",
                "new_table.when_exists",
                "replace belongs to an overwrite",
            )


@dataclass(frozen=True, slots=True)
class InsertOverwriteSpec:
    """``INSERT OVERWRITE``: the rows of ``source`` replace whole partitions.

    ``mode`` decides what is replaced. ``dynamic``: the partitions that occur in the new rows.
    ``static``: every partition of the spec ``partition``. ``table``: everything. In the first two,
    every new row must belong to ``partition``, whose columns are filled in if the source lacks
    them. ``expected_partitions``: specs of all partitions that may change; None: any.
    ``allow_empty``: mode ``table`` may clear the table. ``last_writer_wins``: what other writers
    commit to the same partitions meanwhile is replaced too, instead of being a conflict.
    ``whole_if_unpartitioned``: mode ``dynamic`` does what Spark's does: of a table without
    partitions all rows are replaced, and by no rows, nothing is. The other fields are as in
    ``InsertIntoSpec``.
    """

    source: str
    mode: OverwriteMode
    partition: PartitionSpec = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    by_name: bool = False
    order_by: tuple[str, ...] = ()
    expected_partitions: tuple[PartitionSpec, ...] | None = None
    allow_empty: bool = False
    last_writer_wins: bool = False
    partition_columns: tuple[str, ...] = ()
    schema_evolution: bool = False
    whole_if_unpartitioned: bool = False
    new_table: NewTable | None = None
    kind: ClassVar[str] = "insert_overwrite"

    def __post_init__(self) -> None:
        _require_rows(self)
        require_partition(self.partition, "partition")
        modes = get_args(OverwriteMode)
        require_among(self.mode, modes, "mode")
        require(
            self.mode != "static" or bool(self.partition),
            "partition",
            "mode static needs the partition that is replaced",
            "Name it, or use mode table to replace the whole table.",
        )
        require(
            self.mode != "table" or not self.partition,
            "partition",
            "mode table replaces the whole table",
            "Use mode static to replace a partition.",
        )
        require(
            self.mode == "table" or not self.allow_empty,
            "allow_empty",
            "belongs to mode table",
            "Leave it out: an empty source clears the partition in mode static, and changes "
            "nothing in mode dynamic.",
        )
        require(
            self.mode == "dynamic" or not self.whole_if_unpartitioned,
            "whole_if_unpartitioned",
            "belongs to mode dynamic",
            "Leave it out.",
        )
        require_expected(self.expected_partitions)
        if self.new_table is not None:
            _require_all_columns(self)
            is_replaced = self.new_table.when_exists == "replace" and self.mode == "table"
            require(is_replaced, "new_table", "an overwrite replaces a whole table")


@dataclass(frozen=True, slots=True)
class TruncateTableSpec:
    """``TRUNCATE TABLE target PARTITION (partition)``; without a partition, all rows.

    ``last_writer_wins`` is as in ``InsertOverwriteSpec``.
    """

    partition: PartitionSpec = field(default_factory=dict)
    last_writer_wins: bool = False
    kind: ClassVar[str] = "truncate_table"

    def __post_init__(self) -> None:
        require_partition(self.partition, "partition")


@dataclass(frozen=True, slots=True)
class DropPartitionsSpec:
    """``ALTER TABLE target DROP IF EXISTS PARTITION (…), PARTITION (…)``.

    Without ``if_exists``, a spec that matches no partition is an error. ``last_writer_wins`` is as
    in ``InsertOverwriteSpec``.
    """

    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False
    last_writer_wins: bool = False
    kind: ClassVar[str] = "drop_partitions"

    def __post_init__(self) -> None:
        require(bool(self.partitions), "partitions", "DROP needs at least one partition")
        for index, partition in enumerate(self.partitions):
            require(
                bool(partition),
                f"partitions[{index}]",
                "is empty",
                "To delete all rows, truncate the table.",
            )
            require_partition(partition, f"partitions[{index}]")


InsertStatement = InsertIntoSpec | InsertOverwriteSpec
ClearingStatement = TruncateTableSpec | DropPartitionsSpec
PartitionStatement = InsertStatement | ClearingStatement


def _require_rows(spec: InsertStatement) -> None:
    require(bool(spec.source.strip()), "source", "is empty")
    require(
        not (spec.by_name and spec.columns),
        "columns",
        "BY NAME takes the source's own names",
        "Rename the columns in the source, or leave by_name out.",
    )
    for name in ("columns", "order_by"):
        for index, text in enumerate(getattr(spec, name)):
            require_column(f"{name}[{index}]", text)
    for index, column in enumerate(spec.partition_columns):
        _require_partition_column(f"partition_columns[{index}]", column)


def _require_all_columns(spec: InsertStatement) -> None:
    """Check that a table is created with the columns of its source as they are."""
    for name in ("partition", "columns", "by_name", "partition_columns", "schema_evolution"):
        require(not getattr(spec, name), name, "cannot be combined with new_table", "Leave it out.")


def require_partition(partition: PartitionSpec, name: str) -> None:
    """Check a spec; ``name`` is its name in errors.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    seen_columns: set[str] = set()
    for column, value in partition.items():
        _require_partition_column(f"{name}: the name of a column", column)
        require(bool(value.strip()), f"{name}.{column}", "the value is empty", "Write NULL or ''.")
        require(column.lower() not in seen_columns, name, f"{column} occurs more than once")
        seen_columns.add(column.lower())


def _require_partition_column(field: str, name: str) -> None:
    require_identifier(field, name.strip("`"))


def require_expected(expected: tuple[PartitionSpec, ...] | None) -> None:
    """Refuse a list of partitions that may change which is empty, or has something else.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    if expected is None:
        return
    require(
        bool(expected),
        "expected_partitions",
        "is empty, so no partition may change",
        "Name the partitions that may change, or leave it out.",
    )
    for index, partition in enumerate(expected):
        name = f"expected_partitions[{index}]"
        require(bool(partition), name, "is empty", "Name at least one partition column.")
        require_partition(partition, name)
