"""Statements that are refused before any data is read."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    Failure,
    by_source,
    delete,
    fails,
    insert,
    matched,
    not_matched,
    update,
)

_SOURCE = "VALUES (101, 1, 'x') AS s(id, n, v)"


def not_allowed(*says: str) -> Failure:
    return fails(ErrorCode.EXPRESSION_NOT_ALLOWED, *says)


def condition(name: str, text: str, failure: Failure) -> Behaviour:
    """A condition of a MATCHED clause that is refused."""
    return Behaviour(name, _SOURCE, (matched(delete(), text),), fails=failure)


def on(name: str, text: str, failure: Failure) -> Behaviour:
    """An ON that is refused."""
    return Behaviour(name, _SOURCE, (matched(delete()),), on=text, fails=failure)


def value(name: str, text: str, failure: Failure) -> Behaviour:
    """A value of an UPDATE that is refused."""
    return Behaviour(name, _SOURCE, (matched(update(v=text)),), fails=failure)


BEHAVIOURS = [
    condition(
        "a condition that is no expression",
        "s.n = = 1",
        fails(ErrorCode.SYNTAX_ERROR, "condition of clause 1 (WHEN MATCHED)", "s.n = = 1"),
    ),
    condition(
        "a condition with something behind it",
        "s.n = 1 THEN DELETE",
        fails(ErrorCode.SYNTAX_ERROR, "condition of clause 1", "THEN"),
    ),
    on("an ON that is no expression", "t.id = s.id AND", fails(ErrorCode.SYNTAX_ERROR, "ON")),
    value("a value that is no expression", "concat(s.v", fails(ErrorCode.SYNTAX_ERROR, "of v")),
    condition(
        "a subquery in a condition",
        "s.n IN (SELECT 1)",
        not_allowed("condition of clause 1", "subquery"),
    ),
    condition("EXISTS in a condition", "EXISTS (SELECT 1)", not_allowed("subquery")),
    on("a subquery in ON", "t.id = (SELECT 1)", not_allowed("ON", "subquery")),
    value("a subquery in a value", "(SELECT 'x')", not_allowed("value of v", "subquery")),
    condition("an aggregate in a condition", "max(s.n) = 1", not_allowed("aggregate")),
    value("an aggregate in a value", "max(s.v)", not_allowed("value of v", "aggregate")),
    on("an aggregate in ON", "t.id = max(s.id)", not_allowed("ON", "aggregate")),
    condition(
        "a window function in a condition",
        "row_number() OVER (ORDER BY s.n) = 1",
        not_allowed("window"),
    ),
    value("a function that makes rows", "explode(array(s.v))", not_allowed("makes rows")),
    condition(
        "a nondeterministic condition",
        "rand() < 2",
        not_allowed("condition of clause 1", "nondeterministic"),
    ),
    on("a nondeterministic ON", "t.id = s.id + rand()", not_allowed("ON", "nondeterministic")),
    condition(
        "a condition that is not boolean",
        "s.n + 1",
        fails(ErrorCode.TYPE_MISMATCH, "condition of clause 1", "int"),
    ),
    on("an ON that is not boolean", "s.v", fails(ErrorCode.TYPE_MISMATCH, "ON", "string")),
    value("an unknown function", "no_such(s.v)", fails(ErrorCode.EXPRESSION_INVALID, "no_such")),
    Behaviour(
        "a nondeterministic value for a partition column",
        _SOURCE,
        (matched(update(p="uuid()")),),
        needs_partitions=True,
        fails=fails(ErrorCode.EXPRESSION_NOT_ALLOWED, "value of p", "nondeterministic"),
    ),
    Behaviour(
        "an aggregate in BY SOURCE",
        _SOURCE,
        (by_source(update(n="count(*)")),),
        fails=not_allowed("value of n in clause 1", "aggregate"),
    ),
    Behaviour(
        "an aggregate in NOT MATCHED",
        _SOURCE,
        (not_matched(insert(id="max(s.id)", req="'r'")),),
        fails=not_allowed("value of id in clause 1", "aggregate"),
    ),
    Behaviour(
        "a source column of an interval type",
        "(SELECT 101 AS id, INTERVAL '1' DAY AS gap) AS s",
        (matched(delete(), "s.gap > INTERVAL '1' HOUR"),),
        fails=fails(ErrorCode.NOT_SUPPORTED, "gap", "interval"),
    ),
    Behaviour(
        "a source column with a reserved name",
        "(SELECT 101 AS id, 1 AS __merge_case_number) AS s",
        (matched(delete(), "s.__merge_case_number = 1"),),
        fails=fails(ErrorCode.NOT_SUPPORTED, "__merge_case_number", "reserved"),
    ),
]
