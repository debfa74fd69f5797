"""Random statements for tables with data evolution, which refuse some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tests.oracle.merge import Delete, Merge, Update, UpdateAll
from tests.oracle.statements import DeleteFrom, InsertRows, Statement, UpdateTable
from tests.property.cases import Chain, Step, Table

_PARTITIONED = 3


def evolving_chain(chain: Chain, seed: int) -> Chain:
    """``chain`` with fewer statements that its table refuses; a third of tables has partitions."""
    table, steps = chain.table, chain.steps
    if seed // 2 % _PARTITIONED:
        table = dataclasses.replace(table, partition=None)
        steps = tuple(step for step in steps if not _names_partition(step.statement))
    if not table.kind.deletes_rows:
        steps = tuple(_without_deletes(steps))
    return dataclasses.replace(chain, table=table, steps=steps)


def may_be_refused(statement: Statement, table: Table) -> bool:
    """Whether rows would have to be deleted without vectors, or may have to leave their partition.

    They do not if ON compares the partition column with what is assigned to it.
    """
    if not table.kind.evolves_columns:
        return False
    moves = table.partition is not None and any(
        table.partition in assigned for assigned in _updates(statement, table)
    )
    return moves or (_deletes(statement) and not table.kind.deletes_rows)


def may_store_nothing(statement: Statement, table: Table) -> bool:
    """Whether UPDATEs may assign the partition column alone, which keeps what it has."""
    if not table.kind.evolves_columns:
        return False
    return {table.partition} in _updates(statement, table)


def _names_partition(statement: Statement) -> bool:
    return isinstance(statement, InsertRows) and statement.key is not None


def _without_deletes(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        statement = step.statement
        if isinstance(statement, Merge):
            clauses = tuple(c for c in statement.clauses if not isinstance(c.action, Delete))
            if clauses:
                kept = dataclasses.replace(statement, clauses=clauses)
                yield dataclasses.replace(step, statement=kept)
        elif not isinstance(statement, DeleteFrom):
            yield step


def _deletes(statement: Statement) -> bool:
    if isinstance(statement, Merge):
        return any(isinstance(clause.action, Delete) for clause in statement.clauses)
    return isinstance(statement, DeleteFrom)


def _updates(statement: Statement, table: Table) -> list[set[str]]:
    """The columns that each UPDATE assigns."""
    if isinstance(statement, UpdateTable):
        return [{name for name, _ in statement.assignments}]
    found = []
    for clause in statement.clauses if isinstance(statement, Merge) else ():
        if isinstance(clause.action, UpdateAll):
            found.append({column.name for column in table.columns})
        elif isinstance(clause.action, Update):
            found.append({name for name, _ in clause.action.assignments})
    return found
