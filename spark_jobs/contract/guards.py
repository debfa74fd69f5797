"""What must hold of a statement's changes: if it does not, nothing of it is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.inserts import PartitionSpec, require_expected
from spark_jobs.contract.row_checks import RowCheck, require_checkable
from spark_jobs.contract.side_outputs import SideKind, folded_name, require_side_table

OutsidePartitions = Literal["fail", "keep", "quarantine"]

_DELETES: Final = frozenset(
    {"merge", "delete", "insert_overwrite", "truncate_table", "drop_partitions"}
)
_INSERTS: Final = frozenset({"merge", "insert_into", "insert_overwrite"})
_UPDATES: Final = frozenset({"merge", "update"})
_PLACES: Final = frozenset({"merge", "delete", "update", "insert_into"})
# Those whose source rows each belong to a partition.
_SET_ASIDE: Final = frozenset({"merge", "insert_into"})
_REWRITES: Final = frozenset({"merge", "delete", "update", "insert_overwrite"})
# The kinds of statements that may have checks: all that change rows.
CHECKED_KINDS: Final = _DELETES | _UPDATES | _INSERTS
# What has a least and a largest number.
_LIMITED: Final = ("deleted_rows", "updated_rows", "inserted_rows", "source_rows")
# The kinds of statements for which a guard means anything.
MEANT_FOR: Final[Mapping[str, frozenset[str]]] = {
    "min_deleted_rows": _DELETES,
    "max_deleted_rows": _DELETES,
    "min_updated_rows": _UPDATES,
    "max_updated_rows": _UPDATES,
    "min_inserted_rows": _INSERTS,
    "max_inserted_rows": _INSERTS,
    "min_source_rows": _INSERTS,
    "max_source_rows": _INSERTS,
    "max_deleted_share": _DELETES,
    "max_changed_share": _UPDATES,
    "max_partition_deleted_share": _DELETES,
    "max_partition_changed_share": _UPDATES,
    "max_files_rewritten": _REWRITES,
    "max_bytes_rewritten": _REWRITES,
    # INSERT OVERWRITE has its own.
    "expected_partitions": _PLACES,
    "outside_partitions": _PLACES,
    "same_columns": _INSERTS,
    "audit_table": CHECKED_KINDS,
    "quarantine_table": _SET_ASIDE,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of rows or files, or, in its place, a share (0 to 1) of those of the table."""

    number: int | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        given = (self.number is None) != (self.share is None)
        require(given, "limit", "has either a number or a share")
        require(self.number is None or self.number >= 0, "limit", "must not be negative")
        require(self.share is None or 0 <= self.share <= 1, "limit", "must be from 0 to 100 %")

    def of(self, total: int) -> Fraction:
        """The number that it means of ``total``, exactly."""
        if self.number is not None:
            return Fraction(self.number)
        return exact(self.share or 0.0) * total

    def __str__(self) -> str:
        return f"{self.number:,}" if self.number is not None else percent(self.share or 0.0)


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits of what a statement may do; None: no limit.

    Rows are counted as in ``Metrics``; shares are of the table's rows before the statement. The
    shares are numbers from 0 to 1: of the rows of the whole table, or of each partition that the
    statement changes; rows that are changed are those updated or deleted. Limits of
    ``files_rewritten`` and ``bytes_rewritten`` are compared before anything is written, with what
    the statement may have to rewrite or replace at most. ``checks`` are of rows.

    ``expected_partitions`` are specs of all partitions that may change: what the statement changes
    outside of them fails it, or is kept, and reported, by ``outside_partitions``. ``same_columns``:
    the source has no column that the table lacks, and stores none of a wider type.

    ``audit_table`` (``database.table``) gets a row for each row that the statement changes. With
    ``outside_partitions`` ``quarantine``, ``quarantine_table`` gets the source rows of partitions
    that are not expected, and the statement only the others.
    """

    min_deleted_rows: Limit | None = None
    max_deleted_rows: Limit | None = None
    min_updated_rows: Limit | None = None
    max_updated_rows: Limit | None = None
    min_inserted_rows: Limit | None = None
    max_inserted_rows: Limit | None = None
    min_source_rows: Limit | None = None
    max_source_rows: Limit | None = None
    max_deleted_share: float | None = None
    max_changed_share: float | None = None
    max_partition_deleted_share: float | None = None
    max_partition_changed_share: float | None = None
    max_files_rewritten: Limit | None = None
    max_bytes_rewritten: int | None = None
    expected_partitions: tuple[PartitionSpec, ...] | None = None
    outside_partitions: OutsidePartitions | None = None
    same_columns: bool | None = None
    checks: tuple[RowCheck, ...] = ()
    audit_table: str | None = None
    quarantine_table: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.given():
            if isinstance(value, float):
                require(0 <= value <= 1, f"guards.{name}", f"{value!r} is not from 0 to 1")
        most = self.max_bytes_rewritten
        require(most is None or most >= 0, "guards.max_bytes_rewritten", "must not be negative")
        require_expected(self.expected_partitions)
        for rows in _LIMITED:
            self._require_room(rows)
        choices = get_args(OutsidePartitions)
        if self.outside_partitions is not None:
            require_among(self.outside_partitions, choices, "outside_partitions")
        require(
            self.outside_partitions is None or self.expected_partitions is not None,
            "outside_partitions",
            "needs expected_partitions",
            "Name the partitions that are expected, or leave it out.",
        )
        sets_aside = self.outside_partitions == "quarantine"
        require(
            sets_aside == (self.quarantine_table is not None),
            "quarantine_table",
            "is missing" if sets_aside else "needs outside_partitions='quarantine'",
            "Give both, or none.",
        )

    def _require_room(self, rows: str) -> None:
        least, most = getattr(self, f"min_{rows}"), getattr(self, f"max_{rows}")
        if least is None or most is None or None in (least.number, most.number):
            return
        require(
            least.number <= most.number,
            f"min_{rows}",
            f"{least} is more than max_{rows}, {most}, so that it could never hold",
            "Correct one of them.",
        )

    def given(self) -> Iterator[tuple[str, Any]]:
        """The guards but checks that are set, by name, in the order of their declaration."""
        for guard in fields(self):
            value = getattr(self, guard.name)
            if value is not None and guard.name != "checks":
                yield guard.name, value

    def require_meant(self, kind: str, source_names: Sequence[str] = (), target: str = "") -> None:
        """Refuse guards that mean nothing for statements of a ``kind`` with these sources.

        ``target``: the statement's, as ``TableName.folded``.

        Raises:
            RequestError: REQUEST_INVALID, naming the guard, or the source.
        """
        require_checkable(self.checks, source_names)
        for side, table in self.side_tables.items():
            require_side_table(f"{side}_table", table, target)
        tables = [folded_name(each) for each in self.side_tables.values()]
        require(
            len(set(tables)) == len(tables),
            "quarantine_table",
            "is the audit_table",
            "Name another.",
        )
        meant = {name: MEANT_FOR[name] for name, _ in self.given()}
        if self.checks:
            meant["checks"] = CHECKED_KINDS
        for name, kinds in meant.items():
            require(
                kind in kinds,
                name,
                f"means nothing for {kind.upper().replace('_', ' ')}",
                "Leave it out.",
            )

    @property
    def side_tables(self) -> dict[SideKind, str]:
        """The tables, other than its target, in which the statement leaves rows."""
        given: dict[SideKind, str | None] = {
            "audit": self.audit_table,
            "quarantine": self.quarantine_table,
        }
        return {kind: table for kind, table in given.items() if table is not None}

    @property
    def reads_changes(self) -> bool:
        """Whether the changed rows are read, for which there has to be a Spark session."""
        return bool(self.checks) or self.audit_table is not None

    @property
    def counts_by_partition(self) -> bool:
        """Whether rows must be counted by partition."""
        shares = (self.max_partition_deleted_share, self.max_partition_changed_share)
        return any(each is not None for each in shares)


def exact(share: float) -> Fraction:
    """The share that somebody wrote: 0.29 is 29 of 100, whatever floating numbers make of it."""
    return Fraction(repr(share))


def percent(share: float) -> str:
    """A share (0 to 1) for people: ``2.5 %``."""
    return f"{share * 100:.6g} %"
