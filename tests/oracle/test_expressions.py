"""Both readings of the grammar, by hand: values in Python and text for Spark and DuckDB."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.oracle.dialects import DuckDb, Spark
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
    Value,
)

TRUE, FALSE, NULL = (Constant(value, "boolean") for value in (True, False, None))
ONE, TWO, NO_INT = (Constant(value, "int") for value in (1, 2, None))
NO_TEXT = Constant(None, "string")


def text(value: str) -> Constant:
    return Constant(value, "string")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        *((And(TRUE, other), other.value) for other in (TRUE, FALSE, NULL)),
        *((And(FALSE, other), False) for other in (TRUE, FALSE, NULL)),
        (And(NULL, TRUE), None),
        (And(NULL, FALSE), False),
        (And(NULL, NULL), None),
        *((Or(TRUE, other), True) for other in (TRUE, FALSE, NULL)),
        *((Or(FALSE, other), other.value) for other in (TRUE, FALSE, NULL)),
        (Or(NULL, TRUE), True),
        (Or(NULL, FALSE), None),
        (Or(NULL, NULL), None),
        (Not(TRUE), False),
        (Not(FALSE), True),
        (Not(NULL), None),
        (Compare("=", ONE, ONE), True),
        (Compare("=", ONE, TWO), False),
        (Compare("=", ONE, NO_INT), None),
        (Compare("=", NO_INT, NO_INT), None),
        (Compare("<>", ONE, TWO), True),
        (Compare("<>", ONE, NO_INT), None),
        (Compare("<=>", NO_INT, NO_INT), True),
        (Compare("<=>", ONE, NO_INT), False),
        (Compare("<=>", ONE, ONE), True),
        (Compare("<", ONE, TWO), True),
        (Compare("<=", TWO, TWO), True),
        (Compare(">", ONE, TWO), False),
        (Compare(">=", TWO, TWO), True),
        (Compare("<", text("B"), text("a")), True),
        (Compare("<", text("z"), text("é")), True),
        (Compare("<", text("\uffff"), text("\U0001f600")), True),
        (Compare("<", text(""), text("a")), True),
        (Compare("=", text("a"), text("a ")), False),
        (Compare("<", FALSE, TRUE), True),
        (In(ONE, (TWO, ONE)), True),
        (In(ONE, (TWO,)), False),
        (In(ONE, (TWO, NO_INT)), None),
        (In(ONE, (ONE, NO_INT)), True),
        (In(NO_INT, (ONE,)), None),
        (In(NO_INT, (NO_INT,)), None),
        (IsNull(NULL), True),
        (IsNull(ONE), False),
        (IsNull(ONE, negated=True), True),
        (Concat(text("a"), text("b")), "ab"),
        (Concat(text("a"), NO_TEXT), None),
        (Case(TRUE, ONE, TWO), 1),
        (Case(FALSE, ONE, TWO), 2),
        (Case(NULL, ONE, TWO), 2),
        (Coalesce(NO_INT, TWO), 2),
        (Coalesce(ONE, TWO), 1),
        (Coalesce(NO_INT, NO_INT), None),
        (Arithmetic("+", ONE, TWO), 3),
        (Arithmetic("-", ONE, TWO), -1),
        (Arithmetic("*", TWO, TWO), 4),
        (Arithmetic("+", ONE, NO_INT), None),
    ],
)
def test_three_valued_logic_and_values(expression: Expression, value: Value) -> None:
    result = expression.evaluate({})
    assert (result, type(result)) == (value, type(value))


def test_columns_are_taken_from_their_side() -> None:
    sides = {"t": {"v": 1}, "s": {"v": 2}}
    assert Column("t", "v").evaluate(sides) == 1
    assert Column("s", "v").evaluate(sides) == 2


def test_the_grammar_watches_the_range_of_int() -> None:
    most = Constant(2**31 - 1, "int")
    assert Arithmetic("-", most, ONE).evaluate({}) == 2**31 - 2
    with pytest.raises(AssertionError, match="left the range"):
        Arithmetic("+", most, ONE).evaluate({})


@pytest.mark.parametrize(
    ("expression", "spark", "duckdb"),
    [
        (text("o'k\\"), r"'o\'k\\'", r"'o''k\'"),
        (Constant(-3, "int"), "(-3)", "(-3)"),
        (NO_INT, "CAST(NULL AS INT)", "CAST(NULL AS INT)"),
        (TRUE, "TRUE", "TRUE"),
        (Constant(dt.date(2024, 2, 1), "date"), "DATE '2024-02-01'", "DATE '2024-02-01'"),
        (Column("t", "v"), "T.V", 't."v"'),
        (Column("s", "v", bare=True), "V", 's."v"'),
        (Compare("<=>", ONE, TWO), "(1 <=> 2)", "(1 IS NOT DISTINCT FROM 2)"),
        (And(TRUE, Or(FALSE, Not(NULL))),)
        + ("(TRUE AND (FALSE OR (NOT CAST(NULL AS BOOLEAN))))",) * 2,
        (IsNull(ONE, negated=True), "(1 IS NOT NULL)", "(1 IS NOT NULL)"),
        (In(ONE, (ONE, TWO)), "(1 IN (1, 2))", "(1 IN (1, 2))"),
        (Case(TRUE, ONE, TWO),) + ("CASE WHEN TRUE THEN 1 ELSE 2 END",) * 2,
        (Coalesce(ONE, TWO), "coalesce(1, 2)", "coalesce(1, 2)"),
        (Concat(text("a"), text("b")), "('a' || 'b')", "('a' || 'b')"),
        (Arithmetic("*", ONE, TWO), "(1 * 2)", "(1 * 2)"),
    ],
)
def test_the_text(expression: Expression, spark: str, duckdb: str) -> None:
    assert expression.to_sql(Spark("T", "S", shout=True)) == spark
    assert expression.to_sql(DuckDb()) == duckdb
