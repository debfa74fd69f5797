"""The three kinds of statement: MERGE as ``merge`` has it, and UPDATE and DELETE, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from tests.oracle import merge
from tests.oracle.expressions import Column, Expression, Row
from tests.oracle.merge import Merge, Outcome, TableColumn, Update

COLUMN_NOT_FOUND = "COLUMN_NOT_FOUND"
DUPLICATE_ASSIGNMENT = "DUPLICATE_ASSIGNMENT"


@dataclass(frozen=True)
class UpdateTable:
    """``UPDATE target SET column = value, … WHERE where``; without ``where``: every row."""

    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None = None


@dataclass(frozen=True)
class DeleteFrom:
    """``DELETE FROM target WHERE where``; without ``where``: every row."""

    where: Expression | None = None


Statement = Merge | UpdateTable | DeleteFrom


def apply(
    statement: Statement,
    columns: Sequence[TableColumn],
    target: Sequence[Row],
    source: Sequence[Row],
) -> Outcome:
    """Run a statement; the subqueries of UPDATE and DELETE read ``source``."""
    if isinstance(statement, Merge):
        return merge.apply(statement, columns, target, source)
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
        else:
            outcome.updated += 1
            action = Update(statement.assignments)
            outcome.rows.append(merge.new_row(action, columns, sides, outcome))
    if outcome.errors:
        outcome.rows = list(target)
    return outcome


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
