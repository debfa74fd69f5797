"""A behaviour as data: a statement on a table, and its outcome or error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    Cardinality,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from spark_jobs.errors import ErrorCode
from tests.conformance.tables import ORDERS, Row, SeedTable


@dataclass(frozen=True)
class Failure:
    """The error of a statement: its code, and texts that its message holds."""

    code: ErrorCode
    says: tuple[str, ...]


@dataclass(frozen=True)
class Behaviour:
    """What a statement does to ``table``, whose rows are called by their column ``id``.

    It is a MERGE of ``clauses``, or ``statement``. ``source`` is what stands behind FROM, as a
    relation ``s``; a source ``target`` is the table itself. ``updated`` maps ids to the columns
    that change, and to ``p`` wherever it is assigned; rows that are not named stay as they are.
    ``source_rows`` and ``matched`` are the metrics of these names where they are certain.
    ``needs_partitions``: it means nothing where the table has none; ``needs_narrow_types``: nor
    where it has no TINYINT and VARCHAR.
    ``smoke``: part of the quick run.
    """

    name: str
    source: str
    clauses: tuple[MergeCase, ...]
    on: str = "t.id = s.id"
    table: SeedTable = ORDERS
    cardinality: Cardinality = "effective"
    updated: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()
    inserted: tuple[Row, ...] = ()
    source_rows: int | None = None
    matched: int | None = None
    fails: Failure | None = None
    smoke: bool = False
    statement: DeleteSpec | UpdateSpec | PartitionStatement | None = None
    needs_partitions: bool = False
    needs_narrow_types: bool = False

    @property
    def changes(self) -> bool:
        """Whether the statement makes a snapshot."""
        return bool(self.updated or self.deleted or self.inserted)

    @property
    def expected_rows(self) -> list[Row]:
        """The table's rows afterwards, in no order."""
        kept = [row for row in self.table.rows if row["id"] not in self.deleted]
        return [{**row, **self.updated.get(row["id"], {})} for row in kept] + list(self.inserted)

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


def delete_from(
    name: str, where: str | None, source: str = "VALUES (0) AS s(id)", **outcome: Any
) -> Behaviour:
    """``DELETE FROM t WHERE where``"""
    return Behaviour(name, source, (), statement=DeleteSpec("t", where), matched=0, **outcome)


def update_set(
    name: str,
    assignments: Mapping[str, str],
    where: str | None,
    source: str = "VALUES (0) AS s(id)",
    **outcome: Any,
) -> Behaviour:
    """``UPDATE t SET assignments WHERE where``"""
    pairs = tuple(Assignment(column, value) for column, value in assignments.items())
    return Behaviour(
        name, source, (), statement=UpdateSpec("t", pairs, where), matched=0, **outcome
    )


def fails(code: ErrorCode, *says: str) -> Failure:
    """The error ``code`` whose message holds all of ``says``."""
    return Failure(code, says)


def matched(action: Action, condition: str | None = None) -> MergeCase:
    """``WHEN MATCHED AND condition THEN action``"""
    return MergeCase("matched", action, condition)


def not_matched(action: Action, condition: str | None = None) -> MergeCase:
    """``WHEN NOT MATCHED AND condition THEN action``"""
    return MergeCase("not_matched", action, condition)


def by_source(action: Action, condition: str | None = None) -> MergeCase:
    """``WHEN NOT MATCHED BY SOURCE AND condition THEN action``"""
    return MergeCase("not_matched_by_source", action, condition)


def update(assignments: Mapping[str, str] | None = None, /, **more: str) -> Action:
    """``UPDATE SET column = value, …``"""
    pairs = {**(assignments or {}), **more}
    return UpdateAction(tuple(Assignment(column, value) for column, value in pairs.items()))


def insert(values: Mapping[str, str] | None = None, /, **more: str) -> Action:
    """``INSERT (columns) VALUES (values)``"""
    pairs = {**(values or {}), **more}
    return InsertAction(tuple(pairs.values()), tuple(pairs))


def insert_positional(*values: str) -> Action:
    """``INSERT VALUES (values)``"""
    return InsertAction(values)


update_all = UpdateAllAction
insert_all = InsertAllAction
delete = DeleteAction
