"""Random statements: MERGE with every kind of clause, UPDATE, DELETE and INSERT."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.oracle.expressions import (
    And,
    Case,
    Column,
    Compare,
    Constant,
    ExistsInSource,
    Expression,
    InSource,
    IsNull,
    Not,
    Or,
)
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
from tests.oracle.statements import DeleteFrom, InsertRows, UpdateTable
from tests.property.grammar import BEYOND_INT, TYPES, VALUES, Scope, condition, expression

_Columns = Sequence[TableColumn]
_KEYS = ("k", "p")
_KINDS: list[When] = ["matched", "matched", "not_matched", "not_matched_by_source"]
_JOINS = ["plain"] * 10 + ["<=>"] * 4 + ["target"] * 3 + ["source"] * 2 + ["or", "wide", "never"]


def merge(chance: random.Random, target: _Columns, source: _Columns) -> Merge:
    """A statement on a target and a source, in either mode of cardinality."""
    kinds = chance.choices(_KINDS, k=chance.choice([1, 2, 2, 3, 3, 4, 5]))
    clauses = []
    for index, when in enumerate(kinds):
        last = when not in kinds[index + 1 :]
        needs_one = not last or chance.random() < (0.6 if when == "not_matched_by_source" else 0.2)
        guard = condition(chance, _scope(when, target, source)) if needs_one else None
        clauses.append(Clause(when, _action(chance, when, target, source), guard))
    mode = chance.choice(["effective", "effective", "effective", "strict", "strict"])
    return Merge(_join(chance, target, source), tuple(clauses), mode)


def dml(chance: random.Random, target: _Columns, source: _Columns) -> UpdateTable | DeleteFrom:
    """An UPDATE or a DELETE; in half of them a subquery reads the source."""
    where = None
    if chance.random() < 0.95:
        where = _where(chance, target, source)
    if chance.random() < 0.5:
        return DeleteFrom(where)
    return UpdateTable(_assignments(chance, Scope.of(t=target, bare=True), target), where)


def insert_rows(
    chance: random.Random, target: _Columns, source: _Columns, key: str | None
) -> InsertRows:
    """An INSERT INTO or an INSERT OVERWRITE; ``key`` is the target's partition column, if any."""
    scope = Scope.of(s=_without_big(source), bare=True)
    insert = _insert(chance, scope, target)
    where = condition(chance, scope) if chance.random() < 0.4 else None
    if chance.random() < 0.1:
        where = Constant(value=False, type="boolean")
    mode = chance.choice(["append", "table", *(["dynamic"] * 3 + ["static"] * 3) * bool(key)])
    if mode == "table":
        return InsertRows(insert, mode, where, key, allow_empty=chance.random() < 0.5)
    if mode != "static" and chance.random() < 0.8:
        return InsertRows(insert, mode, where, key)
    if key is None:
        return InsertRows(insert, mode, where)
    kind = TYPES[next(column.type for column in target if column.name == key)]
    spec = Constant(chance.choice([None, *VALUES[kind]]), kind)
    return InsertRows(_within(chance, insert, target, key, spec), mode, where, key, spec)


def _within(
    chance: random.Random, insert: Insert, target: _Columns, key: str, spec: Constant
) -> Insert:
    """The INSERT with rows that mostly belong to the partition."""
    names = insert.columns or tuple(column.name for column in target)
    values = dict(zip(names, insert.values, strict=True))
    kind = chance.choice(["without", "without", "equal", "any"])
    if kind == "without":
        values.pop(key, None)
    if kind == "equal":
        values[key] = spec
    return Insert(tuple(values.values()), tuple(values))


def spoiled(
    chance: random.Random, statement: UpdateTable | DeleteFrom, target: _Columns
) -> UpdateTable | DeleteFrom:
    """The statement with something in it that is an error, at least on some rows."""
    if isinstance(statement, DeleteFrom):
        nowhere = IsNull(Column("t", "nowhere"))
        return DeleteFrom(nowhere if statement.where is None else And(statement.where, nowhere))
    kind = chance.choice(["no such column", "twice", "type", "type", "NULL", "NULL"])
    if kind == "no such column":
        return _assigning(statement, "nowhere", Constant(1, "int"))
    if kind == "twice":
        again = statement.assignments[0]
        return UpdateTable((*statement.assignments, again), statement.where)
    required = [column for column in target if not column.nullable]
    if kind == "NULL" and required:
        column = chance.choice(required)
        value = Constant(None, TYPES[column.type])
    else:
        column = chance.choice([column for column in target if column.type == "INT"])
        value = Constant(BEYOND_INT, "int")
        if chance.random() < 0.3:
            return _assigning(statement, column.name, Constant("no number", "string"))
    on_some_rows = condition(chance, Scope.of(t=target, bare=True), 1)
    return _assigning(statement, column.name, Case(on_some_rows, value, Column("t", column.name)))


def _assigning(statement: UpdateTable, name: str, value: Expression) -> UpdateTable:
    others = tuple(pair for pair in statement.assignments if pair[0] != name)
    return UpdateTable((*others, (name, value)), statement.where)


def _where(chance: random.Random, target: _Columns, source: _Columns) -> Expression:
    scope = Scope.of(t=target, bare=True)
    if chance.random() < 0.08:
        return Constant(chance.choice([True, False, None]), "boolean")
    if chance.random() < 0.5:
        return condition(chance, scope)
    subquery = _subquery(chance, target, source)
    if chance.random() < 0.4:
        subquery = Not(subquery)
    kind = chance.choice(["alone", "and", "or"])
    if kind == "alone":
        return subquery
    parts = chance.sample([subquery, condition(chance, scope, 1)], 2)
    return And(*parts) if kind == "and" else Or(*parts)


def _subquery(chance: random.Random, target: _Columns, source: _Columns) -> Expression:
    # Inside a subquery a bare name would be a column of the source.
    names = {column.name for column in source}
    column = chance.choice([column for column in target if column.name in names])
    of_source = Scope.of(s=_without_big(source))
    if chance.random() < 0.6:
        operand = Column("t", column.name)
        known = IsNull(Column("s", column.name), negated=True)
        kept = known if chance.random() < 0.4 else condition(chance, of_source, 1)
        return InSource(operand, column.name, kept)
    if chance.random() < 0.2:
        return ExistsInSource(condition(chance, of_source))
    equal = Compare("=", *_both(column.name))
    return ExistsInSource(
        And(equal, condition(chance, Scope.of(t=target, s=_without_big(source)), 0))
    )


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


def _join(chance: random.Random, target: _Columns, source: _Columns) -> Expression:
    kind = chance.choice(_JOINS)
    if kind == "never":
        return Constant(value=False, type="boolean")
    if kind == "wide":
        return Compare("<", *_both("v"))
    on: Expression = Compare("<=>" if kind == "<=>" else "=", *_both("id"))
    for name in _KEYS:
        if name in {column.name for column in target} and chance.random() < 0.1:
            on = And(on, Compare(chance.choice(["=", "<=>"]), *_both(name)))
    if kind == "target":
        on = And(on, condition(chance, Scope.of(t=target), 0))
    if kind == "source":
        on = And(condition(chance, Scope.of(s=_without_big(source)), 0), on)
    if kind == "or":
        on = Or(on, condition(chance, _scope("matched", target, source), 0))
    return on


def _both(name: str) -> tuple[Column, Column]:
    return Column("t", name), Column("s", name)


def _action(chance: random.Random, when: When, target: _Columns, source: _Columns) -> Action:
    scope = _scope(when, target, source)
    if when == "not_matched":
        return chance.choice([_insert(chance, scope, target), InsertAll()])
    kinds = ["update", "update", "delete"] + ["all"] * (when == "matched")
    kind = chance.choice(kinds)
    if kind == "update":
        return Update(_assignments(chance, scope, target))
    return UpdateAll() if kind == "all" else Delete()


def _assignments(
    chance: random.Random, scope: Scope, target: _Columns
) -> tuple[tuple[str, Expression], ...]:
    chosen = chance.sample(target, chance.choice([1, 1, 2, 2, 3]))
    return tuple((column.name, _assigned(chance, scope, column)) for column in chosen)


def _insert(chance: random.Random, scope: Scope, target: _Columns) -> Insert:
    if chance.random() < 0.5:
        return Insert(tuple(_assigned(chance, scope, column) for column in target))
    optional = [column for column in target if column.nullable]
    left_out = chance.sample(optional, min(len(optional), chance.randint(0, 2)))
    chosen = chance.sample(target, len(target))
    chosen = [column for column in chosen if column not in left_out]
    values = tuple(_assigned(chance, scope, column) for column in chosen)
    return Insert(values, tuple(column.name for column in chosen))


def _assigned(chance: random.Random, scope: Scope, column: TableColumn) -> Expression:
    """A value for a column: mostly of its type, sometimes one that storing has to cast."""
    special = chance.random()
    if special < 0.07 and column.type == "STRING":
        return expression(chance, scope, chance.choice(["int", "date", "boolean"]), 1)
    if special < 0.12 and column.type == "INT" and any(side == "s" for side, _ in scope.columns):
        return Column("s", "big")
    return expression(chance, scope, TYPES[column.type])
