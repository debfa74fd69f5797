"""The kinds of statement: MERGE as ``merge`` has it, UPDATE, DELETE and INSERT, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from tests.oracle import merge
from tests.oracle.expressions import Column, Constant, Expression, Row
from tests.oracle.merge import Change, Insert, Merge, Outcome, TableColumn, Update

COLUMN_NOT_FOUND = "COLUMN_NOT_FOUND"
DUPLICATE_ASSIGNMENT = "DUPLICATE_ASSIGNMENT"
ROW_OUTSIDE = "ROW_OUTSIDE_PARTITION"
SOURCE_EMPTY = "SOURCE_EMPTY"


@dataclass(frozen=True)
class UpdateTable:
    """``UPDATE target SET column = value, … WHERE where``; without ``where``: every row."""

    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None = None


@dataclass(frozen=True)
class DeleteFrom:
    """``DELETE FROM target WHERE where``; without ``where``: every row."""

    where: Expression | None = None


@dataclass(frozen=True)
class InsertRows:
    """``INSERT OVERWRITE target PARTITION (key = spec) SELECT … FROM source WHERE where``.

    ``insert`` has the values of each source row. ``mode`` ``append`` is INSERT INTO. ``key`` is the
    table's only partition column, if it has one; without ``spec`` the statement names no partition.
    """

    insert: Insert
    mode: Literal["append", "dynamic", "static", "table"]
    where: Expression | None = None
    key: str | None = None
    spec: Constant | None = None
    allow_empty: bool = False


Statement = Merge | UpdateTable | DeleteFrom | InsertRows


def apply(
    statement: Statement,
    columns: Sequence[TableColumn],
    target: Sequence[Row],
    source: Sequence[Row],
) -> Outcome:
    """Run a statement; the subqueries of UPDATE and DELETE read ``source``."""
    if isinstance(statement, Merge):
        return merge.apply(statement, columns, target, source)
    if isinstance(statement, InsertRows):
        return _insert_rows(statement, columns, target, source)
    outcome = Outcome(errors=_analysis_errors(statement, {column.name for column in columns}))
    if outcome.errors:
        outcome.rows = list(target)
        return outcome
    for old in target:
        sides = {"t": old, "rows": source}
        if statement.where is not None and statement.where.evaluate(sides) is not True:
            outcome.rows.append(old)
        elif isinstance(statement, DeleteFrom):
            outcome.deleted += 1
            outcome.changes.append(Change("delete", None, old, None))
        else:
            outcome.updated += 1
            new = merge.new_row(Update(statement.assignments), columns, sides, outcome)
            assert new is not None
            merge.require_same_key(columns, old, new, outcome)
            outcome.rows.append(new)
            outcome.changes.append(Change("update", None, old, new))
    if outcome.errors:
        outcome.rows = list(target)
    return outcome


def _insert_rows(
    statement: InsertRows,
    columns: Sequence[TableColumn],
    target: Sequence[Row],
    source: Sequence[Row],
) -> Outcome:
    """Rule 13."""
    outcome, new = Outcome(), []
    insert, key, spec = statement.insert, statement.key, statement.spec
    if spec is not None and key is not None and insert.columns and key not in insert.columns:
        insert = Insert((*insert.values, spec), (*insert.columns, key))
    if key is not None and insert.columns and key not in insert.columns:
        outcome.errors.add(COLUMN_NOT_FOUND)
    for row in source:
        sides = {"s": row}
        if statement.where is None or statement.where.evaluate(sides) is True:
            new_row = merge.new_row(insert, columns, sides, outcome)
            assert new_row is not None
            new.append(new_row)
    if spec is not None and any(row[str(key)] != spec.value for row in new):
        outcome.errors.add(ROW_OUTSIDE)
    merge.require_different_keys(columns, new, outcome)
    if statement.mode == "table" and not new and not statement.allow_empty:
        outcome.errors.add(SOURCE_EMPTY)
    if outcome.errors:
        outcome.rows = list(target)
        return outcome
    kept = [row for row in target if not _is_replaced(statement, row, new)]
    outcome.inserted, outcome.deleted = len(new), len(target) - len(kept)
    replaced = [row for row in target if _is_replaced(statement, row, new)]
    outcome.changes = [Change("delete", None, row, None) for row in replaced]
    outcome.changes += [Change("insert", None, None, row) for row in new]
    if any(column.is_key for column in columns):  # INSERT INTO is an upsert
        keys = {merge.key_of(columns, row) for row in new}
        kept = [row for row in kept if merge.key_of(columns, row) not in keys]
    outcome.rows = [*kept, *new]
    return outcome


def _is_replaced(statement: InsertRows, row: Row, new: Sequence[Row]) -> bool:
    if statement.mode == "append":
        return False
    if statement.spec is not None:  # of the only partition column, so it is full
        return row[str(statement.key)] == statement.spec.value
    if statement.mode == "dynamic":
        return row[str(statement.key)] in [each[str(statement.key)] for each in new]
    return True


def _analysis_errors(statement: UpdateTable | DeleteFrom, names: set[str]) -> set[str]:
    """Rule 7: what is wrong with the names of a statement, whatever the rows are."""
    errors = set()
    assigned = [name for name, _ in getattr(statement, "assignments", ())]
    if len(set(assigned)) < len(assigned):
        errors.add(DUPLICATE_ASSIGNMENT)
    used = {column.name for column in _columns(statement) if column.side == "t"}
    if not names.issuperset(assigned) or not names.issuperset(used):
        errors.add(COLUMN_NOT_FOUND)
    return errors


def _columns(node: Any) -> Iterator[Column]:
    if isinstance(node, Column):
        yield node
    elif is_dataclass(node):
        yield from (each for field in fields(node) for each in _columns(getattr(node, field.name)))
    elif isinstance(node, tuple):
        yield from (each for part in node for each in _columns(part))
