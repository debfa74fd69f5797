"""Random expressions of the oracle's grammar over the columns that a clause may see."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from hypothesis import strategies as st

from tests.oracle.expressions import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Column,
    Compare,
    Concat,
    Constant,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    Side,
    Type,
    Value,
)
from tests.oracle.merge import ColumnType, TableColumn

# Small domains, so that random values meet; texts that SQL literals and file paths find hard.
VALUES: dict[Type, list[Value]] = {
    "int": [0, 1, 2, 3, -1, 9],
    "string": ["a", "b", "B", "", "a b", "o'k", "é\\", "x=y/z"],
    "date": [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(1969, 12, 31)],
    "boolean": [True, False],
}
TYPES: dict[ColumnType, Type] = {
    "INT": "int",
    "BIGINT": "int",
    "STRING": "string",
    "DATE": "date",
    "BOOLEAN": "boolean",
}
_COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


@dataclass(frozen=True)
class Scope:
    """The columns an expression may use; ``bare``: some without alias, only one side is seen."""

    columns: tuple[tuple[Side, TableColumn], ...]
    bare: bool = False

    @classmethod
    def of(cls, *, bare: bool = False, **sides: Sequence[TableColumn]) -> Scope:
        """The scope of the sides ``t`` and ``s``, or of one of them."""
        return cls(tuple((side, column) for side in sides for column in sides[side]), bare)

    def of_type(self, wanted: Type) -> list[Column]:
        """References to all columns of a type."""
        return [
            Column(side, column.name, bare=self.bare and index % 2 == 0)
            for index, (side, column) in enumerate(self.columns)
            if TYPES[column.type] == wanted
        ]


def constants(wanted: Type) -> st.SearchStrategy[Expression]:
    """Literals of a type, one in eight of them NULL."""
    known = st.sampled_from(VALUES[wanted]).map(lambda value: Constant(value, wanted))
    return st.one_of(*[known] * 7, st.just(Constant(None, wanted)))


def expressions(scope: Scope, wanted: Type, depth: int = 2) -> st.SearchStrategy[Expression]:
    """Expressions of a type.

    ``depth`` bounds ints to nine times the largest column: three statements on values below a
    hundred stay far inside INT.
    """
    columns = scope.of_type(wanted)
    leaves: list[st.SearchStrategy[Expression]] = [constants(wanted)]
    if columns:
        leaves += [st.sampled_from(columns)] * 3
    if depth == 0:
        return st.one_of(*leaves)
    return st.one_of(*leaves, *_inner(scope, wanted, depth - 1))


def _inner(scope: Scope, wanted: Type, depth: int) -> list[st.SearchStrategy[Expression]]:
    part = expressions(scope, wanted, depth)
    condition = conditions(scope, depth)
    nodes: list[st.SearchStrategy[Expression]] = [
        st.builds(Case, condition, part, part),
        st.builds(Coalesce, part, part),
    ]
    if wanted == "int":
        factor = st.integers(-3, 3).map(lambda value: Constant(value, "int"))
        nodes.append(st.builds(Arithmetic, st.sampled_from("+-"), part, part))
        nodes.append(st.builds(Arithmetic, st.just("*"), part, factor))
    if wanted == "string":
        nodes.append(st.builds(Concat, part, part))
    if wanted == "boolean":
        nodes.append(condition)
    return nodes


def conditions(scope: Scope, depth: int = 2) -> st.SearchStrategy[Expression]:
    """Boolean expressions that often depend on the columns in sight."""
    types = sorted({TYPES[column.type] for _, column in scope.columns})
    leaf = st.sampled_from(types).flatmap(lambda type_: _predicates(scope, type_))
    if depth == 0:
        return leaf
    part = conditions(scope, depth - 1)
    return st.one_of(
        leaf, leaf, st.builds(And, part, part), st.builds(Or, part, part), st.builds(Not, part)
    )


def _predicates(scope: Scope, wanted: Type) -> st.SearchStrategy[Expression]:
    column = st.sampled_from(scope.of_type(wanted))
    other = expressions(scope, wanted, 0)
    items = st.lists(constants(wanted), min_size=1, max_size=3).map(tuple)
    nodes: list[st.SearchStrategy[Expression]] = [
        st.builds(Compare, _COMPARISONS, column, other),
        st.builds(Compare, _COMPARISONS, column, constants(wanted)),
        st.builds(In, column, items),
        st.builds(IsNull, column, st.booleans()),
    ]
    if wanted == "boolean":
        nodes.append(column)
    return st.one_of(*nodes)


assert set(VALUES) == set(get_args(Type))
