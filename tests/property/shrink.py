"""Makes a chain that fails smaller, as long as it still fails.

Greedy, as in Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002):
statements, then halves of rows, then clauses, then parts of expressions are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.oracle.expressions import And, Arithmetic, Case, Coalesce, Concat, Expression, Not, Or
from tests.oracle.merge import Clause, Insert, Merge, Update
from tests.oracle.statements import InsertRows, Statement, UpdateTable
from tests.property.cases import Chain, Step, Table
from tests.support.table_kinds import APPEND_COW

TRIES = 80


def smallest(chain: Chain, fails: Callable[[Chain], bool], tries: int = TRIES) -> Chain:
    """The smallest chain found for which ``fails``; at most ``tries`` are tried."""
    candidates = _smaller(chain)
    for _ in range(tries):
        candidate = next(candidates, None)
        if candidate is None:
            break
        if fails(candidate):
            chain = candidate
            candidates = _smaller(chain)
    return chain


def _smaller(chain: Chain) -> Iterator[Chain]:
    for steps in _without_one(chain.steps):
        if steps:
            yield dataclasses.replace(chain, steps=steps)
    needs_partitions = any(isinstance(step.statement, InsertRows) for step in chain.steps)
    for table in _smaller_tables(chain.table):
        if needs_partitions and table.partition != chain.table.partition:
            continue
        yield dataclasses.replace(chain, table=table)
    for index, step in enumerate(chain.steps):
        for smaller in _smaller_steps(step):
            steps = (*chain.steps[:index], smaller, *chain.steps[index + 1 :])
            yield dataclasses.replace(chain, steps=steps)


def _smaller_tables(table: Table) -> Iterator[Table]:
    if table.kind != APPEND_COW:
        yield dataclasses.replace(table, kind=APPEND_COW, rewrite_share=None)
    if table.partition is not None:
        yield dataclasses.replace(table, partition=None)
    for commits in _without_one(table.commits):
        yield dataclasses.replace(table, commits=commits)
    for index, commit in enumerate(table.commits):
        for rows in _without_some(commit):
            if rows:
                commits = (*table.commits[:index], rows, *table.commits[index + 1 :])
                yield dataclasses.replace(table, commits=commits)


def _smaller_steps(step: Step) -> Iterator[Step]:
    if step.form != "builder":
        yield dataclasses.replace(step, form="builder")
    for rows in _without_some(step.source):
        yield dataclasses.replace(step, source=rows)
    for statement in _smaller_statements(step.statement):
        yield dataclasses.replace(step, statement=statement)


def _smaller_statements(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, Merge):
        yield from _smaller_merges(statement)
        return
    if statement.where is not None:
        for part in _parts(statement.where):
            yield dataclasses.replace(statement, where=part)
    if isinstance(statement, InsertRows):
        for values in _with_smaller_part(statement.insert.values):
            yield dataclasses.replace(statement, insert=Insert(values, statement.insert.columns))
    if isinstance(statement, UpdateTable):
        for assignments in _smaller_assignments(statement.assignments):
            yield dataclasses.replace(statement, assignments=assignments)


def _smaller_merges(merge: Merge) -> Iterator[Merge]:
    for clauses in _without_one(merge.clauses):
        if clauses:
            yield dataclasses.replace(merge, clauses=clauses)
    for index, clause in enumerate(merge.clauses):
        for smaller in _smaller_clauses(clause):
            clauses = (*merge.clauses[:index], smaller, *merge.clauses[index + 1 :])
            yield dataclasses.replace(merge, clauses=clauses)
        if clause.condition and clause.when not in {c.when for c in merge.clauses[index + 1 :]}:
            smaller = dataclasses.replace(clause, condition=None)
            clauses = (*merge.clauses[:index], smaller, *merge.clauses[index + 1 :])
            yield dataclasses.replace(merge, clauses=clauses)
    for on in _parts(merge.on):
        yield dataclasses.replace(merge, on=on)


def _smaller_clauses(clause: Clause) -> Iterator[Clause]:
    if clause.condition is not None:
        for part in _parts(clause.condition):
            yield dataclasses.replace(clause, condition=part)
    if isinstance(clause.action, Update):
        for assignments in _smaller_assignments(clause.action.assignments):
            yield dataclasses.replace(clause, action=Update(assignments))
    if isinstance(clause.action, Insert):
        for values in _with_smaller_part(clause.action.values):
            yield dataclasses.replace(clause, action=Insert(values, clause.action.columns))


def _smaller_assignments(
    assignments: tuple[tuple[str, Expression], ...],
) -> Iterator[tuple[tuple[str, Expression], ...]]:
    for fewer in _without_one(assignments):
        if fewer:
            yield fewer
    names = [name for name, _ in assignments]
    for values in _with_smaller_part([value for _, value in assignments]):
        yield tuple(zip(names, values, strict=True))


def _with_smaller_part(values: Sequence[Expression]) -> Iterator[tuple[Expression, ...]]:
    for index, value in enumerate(values):
        for part in _parts(value):
            yield (*values[:index], part, *values[index + 1 :])


def _parts(expression: Expression) -> list[Expression]:
    """The parts of an expression that have its type."""
    match expression:
        case And(left, right) | Or(left, right) | Concat(left, right) | Coalesce(left, right):
            return [left, right]
        case Arithmetic(_, left, right) | Case(_, left, right):
            return [left, right]
        case Not(operand):
            return [operand]
    return []


def _without_one(items: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for index in range(len(items)):
        yield (*items[:index], *items[index + 1 :])


def _without_some(items: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Without one half, one quarter and so on down to single items."""
    size = len(items)
    while size > 1:
        size = -(-size // 2)
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
    if len(items) == 1:
        yield ()
