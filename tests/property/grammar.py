"""Random expressions of the oracle's grammar over the columns that a clause may see."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import get_args

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
    # These are compared, never computed: NaN, two zeros, the last digits.
    "double": [math.nan, -0.0, 0.0, math.inf, -math.inf, 5.0, -1.5],
    "decimal": [
        Decimal("9999999999999999.99"),
        Decimal("-0.01"),
        Decimal("0.00"),
        Decimal("-9999999999999999.99"),
    ],
    "timestamp": [
        dt.datetime.fromisoformat("1970-01-01"),
        dt.datetime.fromisoformat("1970-01-01 00:00:00.000001"),
        dt.datetime.fromisoformat("1969-12-31 23:59:59.999999"),
        dt.datetime.fromisoformat("2024-03-31 02:30"),
        dt.datetime.fromisoformat("1600-02-29"),
    ],
}
TYPES: dict[ColumnType, Type] = {
    "INT": "int",
    "BIGINT": "int",
    "STRING": "string",
    "DATE": "date",
    "BOOLEAN": "boolean",
    "DOUBLE": "double",
    "DECIMAL(18, 2)": "decimal",
    "TIMESTAMP_NTZ": "timestamp",
}
BEYOND_INT = 3_000_000_000
_COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
_NULL_CONSTANTS = 0.1


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


def constant(chance: random.Random, wanted: Type) -> Constant:
    """A literal of a type, seldom NULL."""
    is_null = chance.random() < _NULL_CONSTANTS
    return Constant(None if is_null else chance.choice(VALUES[wanted]), wanted)


def expression(chance: random.Random, scope: Scope, wanted: Type, depth: int = 2) -> Expression:
    """An expression of a type.

    ``depth`` bounds ints to nine times the largest column: three statements on values below a
    hundred stay far inside INT.
    """
    if depth == 0 or chance.random() < 0.4:
        columns = scope.of_type(wanted)
        if columns and chance.random() < 0.75:
            return chance.choice(columns)
        return constant(chance, wanted)
    return chance.choice(_nodes(chance, scope, wanted, depth - 1))()


def _nodes(
    chance: random.Random, scope: Scope, wanted: Type, depth: int
) -> list[Callable[[], Expression]]:
    def part() -> Expression:
        return expression(chance, scope, wanted, depth)

    nodes: list[Callable[[], Expression]] = [
        lambda: Case(condition(chance, scope, depth), part(), part()),
        lambda: Coalesce(part(), part()),
    ]
    if wanted == "int":
        nodes.append(lambda: Arithmetic(chance.choice("+-"), part(), part()))
        nodes.append(lambda: Arithmetic("*", part(), Constant(chance.randint(-3, 3), "int")))
    if wanted == "string":
        nodes.append(lambda: Concat(part(), part()))
    if wanted == "boolean":
        nodes.append(lambda: condition(chance, scope, depth))
    return nodes


def condition(chance: random.Random, scope: Scope, depth: int = 2) -> Expression:
    """A boolean expression that depends on the columns in sight."""
    if depth == 0 or chance.random() < 0.5:
        return _predicate(chance, scope)
    kind = chance.choice(["and", "or", "or", "not"])
    part = condition(chance, scope, depth - 1)
    if kind == "not":
        return Not(part)
    other = condition(chance, scope, depth - 1)
    return And(part, other) if kind == "and" else Or(part, other)


def _predicate(chance: random.Random, scope: Scope) -> Expression:
    wanted = chance.choice(sorted({TYPES[column.type] for _, column in scope.columns}))
    column = chance.choice(scope.of_type(wanted))
    kind = chance.choice(["constant", "constant", "other", "in", "null", "itself"])
    if kind == "itself" and wanted == "boolean":
        return column
    if kind == "in":
        items = [constant(chance, wanted) for _ in range(chance.randint(1, 3))]
        return In(column, tuple(items))
    if kind == "null":
        return IsNull(column, negated=chance.random() < 0.7)
    other = expression(chance, scope, wanted, 0) if kind == "other" else constant(chance, wanted)
    return Compare(chance.choice(_COMPARISONS), column, other)


assert set(VALUES) == set(get_args(Type))
