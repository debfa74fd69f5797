"""The three kinds of statement: MERGE as ``merge`` has it, and UPDATE and DELETE, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle import merge
from tests.oracle.expressions import Expression, Row
from tests.oracle.merge import Merge, Outcome, TableColumn, Update


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
    outcome = Outcome()
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
