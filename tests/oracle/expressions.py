"""A small expression grammar with two readings that provably agree: SQL text and Python.

Types: ``int`` (INT and BIGINT columns; all arithmetic stays within INT, which ``evaluate`` checks),
``string``, ``date``, ``boolean``, and those that are only compared: ``double``, whose NaN equals
itself and is above every number, ``decimal`` and ``timestamp`` (without a zone). NULL is None. Left
out is everything whose result depends on the engine: division, overflow, implicit casts, functions
of the session, and any collation but one that ignores the case.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

Value = int | float | Decimal | str | dt.date | dt.datetime | bool | None
Row = Mapping[str, Value]
Side = Literal["t", "s"]
# What an expression is evaluated on: the row "t" of the target and the row "s" of the source, where
# they are seen, and "rows", all rows of the source, where a subquery may read them.
Sides = Mapping[str, Any]
Type = Literal["int", "string", "date", "boolean", "double", "decimal", "timestamp"]

INT_RANGE = range(-(2**31), 2**31)
_NAMES: dict[Type, str] = {
    "int": "INT",
    "string": "STRING",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "decimal": "DECIMAL(18, 2)",
    "timestamp": "TIMESTAMP_NTZ",
}


class Dialect(Protocol):
    """Where the texts of two engines differ."""

    def column(self, side: Side, name: str, *, bare: bool) -> str:
        """A reference to a column."""
        ...

    def correlated(self, condition: str) -> str:
        """The condition of a correlated subquery."""
        ...

    def source(self) -> str:
        """The source in a FROM clause, with its alias."""
        ...

    def string(self, value: str) -> str:
        """A string literal."""
        ...

    def null_safe_equal(self, left: str, right: str) -> str:
        """Equality for which NULL equals NULL."""
        ...

    def moment(self, value: dt.datetime) -> str:
        """A literal of a timestamp without a zone."""
        ...

    def ignoring_case(self, left: str, operator: str, right: str) -> str:
        """A comparison of two strings in small letters."""
        ...


class Expression(Protocol):
    """A node of the grammar."""

    def to_sql(self, dialect: Dialect) -> str:
        """The expression as text, in brackets where it needs them."""
        ...

    def evaluate(self, sides: Sides) -> Value:
        """The expression's value for one pair of rows, or for the one row there is."""
        ...


@dataclass(frozen=True)
class Column:
    """A column of one side; ``bare`` leaves the alias out of the text."""

    side: Side
    name: str
    bare: bool = False

    def to_sql(self, dialect: Dialect) -> str:
        return dialect.column(self.side, self.name, bare=self.bare)

    def evaluate(self, sides: Sides) -> Value:
        return sides[self.side][self.name]


@dataclass(frozen=True)
class Constant:
    """A constant of a type, NULL included."""

    value: Value
    type: Type

    def to_sql(self, dialect: Dialect) -> str:
        if self.value is None:
            return f"CAST(NULL AS {_NAMES[self.type]})"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        if isinstance(self.value, dt.datetime):
            return dialect.moment(self.value)
        if isinstance(self.value, dt.date):
            return f"DATE '{self.value.isoformat()}'"
        if isinstance(self.value, float | Decimal):
            return f"CAST('{self.value}' AS {_NAMES[self.type]})"
        if isinstance(self.value, int):
            return str(self.value) if self.value >= 0 else f"({self.value})"
        return dialect.string(self.value)

    def evaluate(self, sides: Sides) -> Value:
        del sides
        return self.value


@dataclass(frozen=True)
class Arithmetic:
    """``+``, ``-`` or ``*`` of two ints; NULL when one of them is."""

    operator: Literal["+", "-", "*"]
    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"({self.left.to_sql(dialect)} {self.operator} {self.right.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        left, right = self.left.evaluate(sides), self.right.evaluate(sides)
        if left is None or right is None:
            return None
        assert isinstance(left, int)
        assert isinstance(right, int)
        result = {"+": left + right, "-": left - right, "*": left * right}[self.operator]
        assert result in INT_RANGE, "the grammar left the range in which engines agree"
        return result


@dataclass(frozen=True)
class Concat:
    """``left || right``; NULL when one of them is."""

    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"({self.left.to_sql(dialect)} || {self.right.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        left, right = self.left.evaluate(sides), self.right.evaluate(sides)
        return None if left is None or right is None else f"{left}{right}"


@dataclass(frozen=True)
class Compare:
    """A comparison of two values of one type; NULL when one is NULL, but for ``<=>``."""

    operator: Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]
    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        left, right = self.left.to_sql(dialect), self.right.to_sql(dialect)
        if self.operator == "<=>":
            return dialect.null_safe_equal(left, right)
        return f"({left} {self.operator} {right})"

    def evaluate(self, sides: Sides) -> Value:
        left, right = self.left.evaluate(sides), self.right.evaluate(sides)
        if self.operator == "<=>":
            return _rank(left) == _rank(right)
        if left is None or right is None:
            return None
        assert type(left) is type(right), (self, left, right)
        return _compare(self.operator, left, right)


@dataclass(frozen=True)
class CompareIgnoringCase:
    """A comparison of two strings by their small letters; NULL when one is NULL."""

    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        left, right = self.left.to_sql(dialect), self.right.to_sql(dialect)
        return dialect.ignoring_case(left, self.operator, right)

    def evaluate(self, sides: Sides) -> Value:
        left, right = self.left.evaluate(sides), self.right.evaluate(sides)
        if left is None or right is None:
            return None
        return _compare(self.operator, str(left).lower(), str(right).lower())


def _rank(value: Value) -> Any:
    """What compares as ``value`` does: NaN equals itself and comes last."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


def _is_among(value: Value, items: Sequence[Value]) -> bool:
    return _rank(value) in list(map(_rank, items))


def _compare(operator: str, left: Value, right: Value) -> bool:
    # UTF-8 byte order, the engines' order of strings, is the order of code points, Python's.
    less = _rank(left) < _rank(right)
    equal = _rank(left) == _rank(right)
    return {
        "=": equal,
        "<>": not equal,
        "<": less,
        "<=": less or equal,
        ">": not less and not equal,
        ">=": not less,
    }[operator]


@dataclass(frozen=True)
class And:
    """Three-valued AND: FALSE wins over NULL."""

    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"({self.left.to_sql(dialect)} AND {self.right.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        values = (self.left.evaluate(sides), self.right.evaluate(sides))
        if False in values:
            return False
        return None if None in values else True


@dataclass(frozen=True)
class Or:
    """Three-valued OR: TRUE wins over NULL."""

    left: Expression
    right: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"({self.left.to_sql(dialect)} OR {self.right.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        values = (self.left.evaluate(sides), self.right.evaluate(sides))
        if True in values:
            return True
        return None if None in values else False


@dataclass(frozen=True)
class Not:
    """Three-valued NOT: NULL stays NULL."""

    operand: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"(NOT {self.operand.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        value = self.operand.evaluate(sides)
        return None if value is None else not value


@dataclass(frozen=True)
class IsNull:
    """``IS NULL`` or, negated, ``IS NOT NULL``; never NULL."""

    operand: Expression
    negated: bool = False

    def to_sql(self, dialect: Dialect) -> str:
        return f"({self.operand.to_sql(dialect)} IS {'NOT ' if self.negated else ''}NULL)"

    def evaluate(self, sides: Sides) -> Value:
        return (self.operand.evaluate(sides) is None) is not self.negated


@dataclass(frozen=True)
class In:
    """``operand IN (items)``; NULL when it is not found but might be."""

    operand: Expression
    items: tuple[Expression, ...]

    def to_sql(self, dialect: Dialect) -> str:
        items = ", ".join(item.to_sql(dialect) for item in self.items)
        return f"({self.operand.to_sql(dialect)} IN ({items}))"

    def evaluate(self, sides: Sides) -> Value:
        value = self.operand.evaluate(sides)
        items = [item.evaluate(sides) for item in self.items]
        if value is None:
            return None
        if _is_among(value, items):
            return True
        return None if None in items else False


@dataclass(frozen=True)
class Case:
    """``CASE WHEN condition THEN value ELSE otherwise END``; NULL is not TRUE."""

    condition: Expression
    value: Expression
    otherwise: Expression

    def to_sql(self, dialect: Dialect) -> str:
        parts = (part.to_sql(dialect) for part in (self.condition, self.value, self.otherwise))
        return "CASE WHEN {} THEN {} ELSE {} END".format(*parts)

    def evaluate(self, sides: Sides) -> Value:
        chosen = self.value if self.condition.evaluate(sides) is True else self.otherwise
        return chosen.evaluate(sides)


@dataclass(frozen=True)
class Coalesce:
    """The first value that is not NULL."""

    first: Expression
    second: Expression

    def to_sql(self, dialect: Dialect) -> str:
        return f"coalesce({self.first.to_sql(dialect)}, {self.second.to_sql(dialect)})"

    def evaluate(self, sides: Sides) -> Value:
        first = self.first.evaluate(sides)
        return self.second.evaluate(sides) if first is None else first


@dataclass(frozen=True)
class InSource:
    """``operand IN (SELECT column FROM source WHERE filter)``; the filter sees the source only.

    NULL when the value is not found but might be; FALSE when the subquery has no row.
    """

    operand: Expression
    column: str
    filter: Expression

    def to_sql(self, dialect: Dialect) -> str:
        column = dialect.column("s", self.column, bare=False)
        query = f"SELECT {column} FROM {dialect.source()} WHERE {self.filter.to_sql(dialect)}"
        return f"({self.operand.to_sql(dialect)} IN ({query}))"

    def evaluate(self, sides: Sides) -> Value:
        value = self.operand.evaluate(sides)
        kept = [row for row in sides["rows"] if self.filter.evaluate({"s": row}) is True]
        items = [row[self.column] for row in kept]
        if not items:
            return False
        if value is None:
            return None
        if _is_among(value, items):
            return True
        return None if None in items else False


@dataclass(frozen=True)
class ExistsInSource:
    """``EXISTS (SELECT 1 FROM source WHERE condition)``; the condition sees both sides."""

    condition: Expression

    def to_sql(self, dialect: Dialect) -> str:
        condition = dialect.correlated(self.condition.to_sql(dialect))
        return f"(EXISTS (SELECT 1 FROM {dialect.source()} WHERE {condition}))"

    def evaluate(self, sides: Sides) -> Value:
        pairs = ({"t": sides["t"], "s": row} for row in sides["rows"])
        return any(self.condition.evaluate(pair) is True for pair in pairs)
