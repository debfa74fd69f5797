"""Random MERGE statements with every kind of clause."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.oracle.expressions import And, Column, Compare, Constant, Expression, Or
from tests.oracle.merge import (
    Action,
    Clause,
    Delete,
    Insert,
    InsertAll,
    Merge,
    TableColumn,
    Update,
    UpdateAll,
    When,
)
from tests.property.grammar import TYPES, Scope, conditions, expressions

_Columns = Sequence[TableColumn]
_KEYS = ("k", "p")
_KINDS: list[When] = ["matched", "matched", "not_matched", "not_matched_by_source"]


@st.composite
def merges(draw: st.DrawFn, target: _Columns, source: _Columns) -> Merge:
    """A statement on a target and a source, in either mode of cardinality."""
    number = draw(st.sampled_from([3, 2, 4, 5, 1, 6]))
    kinds = draw(st.lists(st.sampled_from(_KINDS), min_size=number, max_size=number))
    clauses: list[Clause] = []
    for index, when in enumerate(kinds):
        last = when not in kinds[index + 1 :]
        condition = None
        if not last or draw(st.sampled_from([False, False, False, True])):
            condition = draw(conditions(_scope(when, target, source)))
        clauses.append(Clause(when, draw(_actions(when, target, source)), condition))
    mode = draw(st.sampled_from(["effective", "effective", "strict"]))
    return Merge(draw(_joins(target, source)), tuple(clauses), mode)


def _scope(when: When, target: _Columns, source: _Columns) -> Scope:
    source = _without_big(source)
    if when == "not_matched":
        return Scope.of(s=source, bare=True)
    if when == "not_matched_by_source":
        return Scope.of(t=target, bare=True)
    return Scope.of(t=target, s=source)


def _without_big(source: _Columns) -> _Columns:
    # Columns that hold what INT does not take no part in arithmetic.
    return [column for column in source if column.name != "big" and not _is_big_key(column)]


def _is_big_key(column: TableColumn) -> bool:
    return column.name == "id" and column.type == "BIGINT"


# The first of a list is what hypothesis shrinks to, and what it draws more often than the rest.
_JOINS = ["plain"] * 9 + ["<=>"] * 4 + ["target"] * 3 + ["source"] * 2 + ["or", "wide", "never"]


@st.composite
def _joins(draw: st.DrawFn, target: _Columns, source: _Columns) -> Expression:
    kind = draw(st.sampled_from(_JOINS))
    if kind == "never":
        return Constant(value=False, type="boolean")
    if kind == "wide":
        return Compare("<", *_both("v"))
    on: Expression = Compare("<=>" if kind == "<=>" else "=", *_both("id"))
    names = {column.name for column in target}
    for name in _KEYS:
        if name in names and draw(st.sampled_from([False] * 7 + [True])):
            on = And(on, Compare(draw(st.sampled_from(["=", "<=>"])), *_both(name)))
    if kind == "target":
        on = And(on, draw(conditions(Scope.of(t=target), 0)))
    if kind == "source":
        on = And(draw(conditions(Scope.of(s=_without_big(source)), 0)), on)
    if kind == "or":
        on = Or(on, draw(conditions(_scope("matched", target, source), 0)))
    return on


def _both(name: str) -> tuple[Column, Column]:
    return Column("t", name), Column("s", name)


def _actions(when: When, target: _Columns, source: _Columns) -> st.SearchStrategy[Action]:
    scope = _scope(when, target, source)
    if when == "not_matched":
        return st.one_of(_inserts(scope, target), st.just(InsertAll()))
    update = _updates(scope, target)
    if when == "matched":
        return st.one_of(update, update, st.just(UpdateAll()), st.just(Delete()))
    return st.one_of(update, update, st.just(Delete()))


@st.composite
def _updates(draw: st.DrawFn, scope: Scope, target: _Columns) -> Update:
    chosen = draw(st.lists(st.sampled_from(target), min_size=1, max_size=4, unique=True))
    return Update(tuple((column.name, draw(_assigned(scope, column))) for column in chosen))


@st.composite
def _inserts(draw: st.DrawFn, scope: Scope, target: _Columns) -> Insert:
    if draw(st.booleans()):
        return Insert(tuple(draw(_assigned(scope, column)) for column in target))
    optional = [column for column in target if column.nullable]
    left_out = draw(st.lists(st.sampled_from(optional), max_size=2, unique=True))
    chosen = draw(st.permutations([column for column in target if column not in left_out]))
    values = tuple(draw(_assigned(scope, column)) for column in chosen)
    return Insert(values, tuple(column.name for column in chosen))


@st.composite
def _assigned(draw: st.DrawFn, scope: Scope, column: TableColumn) -> Expression:
    """A value for a column: mostly of its type, sometimes one that storing has to cast."""
    special = draw(st.integers(0, 14))
    if special == 0 and column.type == "STRING":
        return draw(expressions(scope, draw(st.sampled_from(["int", "date", "boolean"])), 1))
    if special == 1 and column.type == "INT" and any(side == "s" for side, _ in scope.columns):
        return Column("s", "big")
    return draw(expressions(scope, TYPES[column.type]))
