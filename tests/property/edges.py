"""Chains whose rows and conditions also have values at the edges of their types.

The table and the sources get one more column, ``x``: floating point with NaN and two zeros, the
largest and smallest numbers, times between milliseconds, or texts that are compared without their
case. Conditions of the statements are joined with one on it. All comes from a generator of its own:
the other columns and parts of a seed stay what they were.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from tests.oracle.expressions import (
    And,
    Column,
    Compare,
    CompareIgnoringCase,
    Constant,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    Row,
    Side,
    Value,
)
from tests.oracle.merge import Action, Clause, ColumnType, Insert, Merge, TableColumn, Update
from tests.oracle.statements import DeleteFrom, InsertRows, Statement, UpdateTable
from tests.property.cases import MERGE_SHARE, Chain, Step, random_chain
from tests.property.grammar import TYPES, VALUES
from tests.support.table_kinds import TableKind

_SHARE: Final = 0.5
_NULLS: Final = 0.15
_KINDS: Final[list[ColumnType]] = [
    "DOUBLE",
    "DOUBLE",
    "DECIMAL(18, 2)",
    "TIMESTAMP_NTZ",
    "BIGINT",
    "INT",
    "STRING",
]
_EXTREMES: Final[dict[str, list[Value]]] = {
    "BIGINT": [-(2**63), 2**63 - 1, 0, -1, 7],
    "INT": [-(2**31), 2**31 - 1, 0, -1, 7],
}
_COMPARISONS: Final = ["=", "<>", "<", "<=", ">", ">="]


def edged_chain(
    seed: int, kind: TableKind | None = None, *, merge_share: float = MERGE_SHARE
) -> Chain:
    """The chain of a seed, as ``random_chain`` has it; half of them with the column."""
    chain = random_chain(seed, kind, merge_share=merge_share)
    chance = random.Random(f"edges {seed}")
    if chance.random() >= _SHARE:
        return chain
    edge = _Edge(chance, TableColumn("x", chance.choice(_KINDS)))
    table = chain.table
    commits = tuple(tuple(map(edge.row, rows)) for rows in table.commits)
    table = replace(table, columns=(*table.columns, edge.column), commits=commits)
    return replace(chain, table=table, steps=tuple(map(edge.step, chain.steps)))


class _Edge:
    """One more column, and conditions on it."""

    def __init__(self, chance: random.Random, column: TableColumn) -> None:
        self._chance = chance
        self.column = column
        self._values = _EXTREMES.get(column.type) or VALUES[TYPES[column.type]]

    def row(self, row: Row) -> Row:
        """``row`` with a value."""
        is_null = self._chance.random() < _NULLS
        return {**row, self.column.name: None if is_null else self._chance.choice(self._values)}

    def step(self, step: Step) -> Step:
        """``step`` with the column in its source and its statement."""
        columns = (*step.source_columns, self.column)
        statement = self._statement(step.statement)
        return replace(
            step,
            source_columns=columns,
            source=tuple(map(self.row, step.source)),
            statement=statement,
        )

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case DeleteFrom(where):
                return DeleteFrom(self._joined(where, "t"))
            case UpdateTable(assignments, where):
                return UpdateTable(assignments, self._joined(where, "t"))
            case InsertRows():
                return replace(statement, insert=self._insert(statement.insert))
            case Merge():
                on = statement.on
                if self._chance.random() < 0.4:
                    on = And(on, self._condition("t"))
                return replace(
                    statement, on=on, clauses=tuple(map(self._clause, statement.clauses))
                )
        raise AssertionError(statement)

    def _clause(self, clause: Clause) -> Clause:
        side: Side = "s" if clause.when == "not_matched" else "t"
        condition = clause.condition
        if condition is not None and self._chance.random() < 0.6:
            condition = self._joined(condition, side)
        return replace(clause, action=self._action(clause), condition=condition)

    def _action(self, clause: Clause) -> Action:
        match clause.action:
            case Insert():
                return self._insert(clause.action)
            case Update(assignments) if clause.when == "matched" and self._chance.random() < 0.5:
                return Update((*assignments, (self.column.name, Column("s", self.column.name))))
        return clause.action

    def _insert(self, insert: Insert) -> Insert:
        if insert.columns:
            return insert
        return Insert((*insert.values, Column("s", self.column.name)))

    def _joined(self, condition: Expression | None, side: Side) -> Expression:
        own = self._condition(side)
        if condition is None:
            return own
        return And(condition, own) if self._chance.random() < 0.4 else Or(condition, own)

    def _condition(self, side: Side) -> Expression:
        column, value = Column(side, self.column.name), self._constant()
        kind = self._chance.choice(["compared", "compared", "compared", "not", "in", "null"])
        if kind == "in":
            return In(column, (value, self._constant()))
        if kind == "null":
            return IsNull(column, negated=self._chance.random() < 0.5)
        sign = self._chance.choice(_COMPARISONS)
        is_text = self.column.type == "STRING"
        compared = (CompareIgnoringCase if is_text else Compare)(sign, column, value)
        return Not(compared) if kind == "not" else compared

    def _constant(self) -> Constant:
        return Constant(self._chance.choice(self._values), TYPES[self.column.type])
