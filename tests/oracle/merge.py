"""What a MERGE means, rule by rule on lists of rows: neither Spark nor this project's engine.

It follows the project's page on semantics and is written to be read beside it, not to be fast:
every source row meets every target row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.oracle.expressions import INT_RANGE, Expression, Row, Sides, Value

MULTIPLE_MATCHES = "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
NOT_NULL = "NOT_NULL_VIOLATION"
NOT_STORABLE = "VALUE_NOT_STORABLE"
KEY_CHANGED = "KEY_CHANGED"
DUPLICATE_KEY = "DUPLICATE_KEY_INSERT"

When = Literal["matched", "not_matched", "not_matched_by_source"]
ColumnType = Literal[
    "INT", "BIGINT", "STRING", "DATE", "BOOLEAN", "DOUBLE", "DECIMAL(18, 2)", "TIMESTAMP_NTZ"
]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; ``is_key``: of its primary key."""

    name: str
    type: ColumnType
    nullable: bool = True
    is_key: bool = False


@dataclass(frozen=True)
class Update:
    """``UPDATE SET column = value, …``: all values are computed from the old row."""

    assignments: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class UpdateAll:
    """``UPDATE SET *``"""


@dataclass(frozen=True)
class Delete:
    """``DELETE``"""


@dataclass(frozen=True)
class Insert:
    """``INSERT (columns) VALUES (values)``; no columns: by position."""

    values: tuple[Expression, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class InsertAll:
    """``INSERT *``"""


Action = Update | UpdateAll | Delete | Insert | InsertAll


@dataclass(frozen=True)
class Clause:
    """One WHEN clause; without a condition it always applies."""

    when: When
    action: Action
    condition: Expression | None = None


@dataclass(frozen=True)
class Merge:
    """A MERGE statement."""

    on: Expression
    clauses: tuple[Clause, ...]
    cardinality: Literal["effective", "strict"] = "effective"

    def of_kind(self, when: When) -> list[Clause]:
        """The clauses of one kind, in order."""
        return [clause for clause in self.clauses if clause.when == when]


@dataclass(frozen=True)
class Change:
    """A row that a statement changes: by the WHEN clause of this number, from 1, if it is one's."""

    operation: Literal["insert", "update", "delete"]
    clause: int | None
    old: Row | None
    new: Row | None


@dataclass
class Outcome:
    """The table after the statement, and what was counted on the way.

    ``errors`` are the codes of all errors that the statement meets: an engine reports one of them
    and leaves the table alone, so ``rows`` are then the old rows and the counts mean nothing.
    """

    rows: list[Row] = field(default_factory=list)
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    matched: int = 0
    errors: set[str] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether a snapshot is due."""
        return self.inserted + self.updated + self.deleted > 0


def apply(
    merge: Merge, columns: Sequence[TableColumn], target: Sequence[Row], source: Sequence[Row]
) -> Outcome:
    """Run ``merge`` on the rows of ``target`` and ``source``."""
    outcome = Outcome()
    pairs = [[row for row in source if _on(merge, old, row)] for old in target]
    outcome.matched = sum(len(matches) for matches in pairs)
    for old, matches in zip(target, pairs, strict=True):
        _change_target_row(merge, columns, old, matches, outcome)
    for row in source:
        if not any(_on(merge, old, row) for old in target):
            _insert(merge, columns, row, outcome)
    require_different_keys(columns, outcome.rows, outcome)
    if outcome.errors:
        outcome.rows = list(target)
    return outcome


def _on(merge: Merge, old: Row, row: Row) -> bool:
    return merge.on.evaluate({"t": old, "s": row}) is True


def _applying(clauses: Iterable[Clause], sides: Sides) -> Clause | None:
    """Rule 1: the first clause whose condition is TRUE."""
    for clause in clauses:
        if clause.condition is None or clause.condition.evaluate(sides) is True:
            return clause
    return None


def _change_target_row(
    merge: Merge,
    columns: Sequence[TableColumn],
    old: Row,
    matches: Sequence[Row],
    outcome: Outcome,
) -> None:
    candidates: list[Sides] = [{"t": old, "s": row} for row in matches] or [{"t": old}]
    clauses = merge.of_kind("matched" if matches else "not_matched_by_source")
    effects = [
        (clause, sides) for sides in candidates if (clause := _applying(clauses, sides)) is not None
    ]
    if _too_many(merge, len(matches), len(effects)):
        outcome.errors.add(MULTIPLE_MATCHES)
    new_rows = [new_row(clause.action, columns, sides, outcome) for clause, sides in effects]
    if not effects:
        outcome.rows.append(old)  # rule 3: carried once, however many rows match it
    else:
        number = merge.clauses.index(effects[0][0]) + 1
        _change(outcome, number, old, new_rows[0])
    for new in new_rows:
        if new is not None:
            require_same_key(columns, old, new, outcome)


def _change(outcome: Outcome, clause: int, old: Row, new: Row | None) -> None:
    if new is None:
        outcome.deleted += 1
        outcome.changes.append(Change("delete", clause, old, None))
    else:
        outcome.updated += 1
        outcome.rows.append(new)
        outcome.changes.append(Change("update", clause, old, new))


def key_of(columns: Sequence[TableColumn], row: Row) -> tuple[Value, ...]:
    """The values of the primary key; empty without one."""
    return tuple(row[column.name] for column in columns if column.is_key)


def require_same_key(columns: Sequence[TableColumn], old: Row, new: Row, outcome: Outcome) -> None:
    """Rule 9: an UPDATE does not change the primary key."""
    if key_of(columns, old) != key_of(columns, new):
        outcome.errors.add(KEY_CHANGED)


def require_different_keys(
    columns: Sequence[TableColumn], rows: Sequence[Row], outcome: Outcome
) -> None:
    """Rule 9: no two rows have the same primary key."""
    keys = [key_of(columns, row) for row in rows]
    if any(column.is_key for column in columns) and len(set(keys)) < len(keys):
        outcome.errors.add(DUPLICATE_KEY)


def _too_many(merge: Merge, matches: int, effects: int) -> bool:
    """Rule 2."""
    clauses = merge.of_kind("matched")
    if len(clauses) == 1 and clauses[0].action == Delete() and clauses[0].condition is None:
        return False
    if merge.cardinality == "strict":
        return matches > 1 and bool(clauses)
    return effects > 1


def _insert(merge: Merge, columns: Sequence[TableColumn], row: Row, outcome: Outcome) -> None:
    sides: Sides = {"s": row}
    clause = _applying(merge.of_kind("not_matched"), sides)
    if clause is None:
        return
    inserted = new_row(clause.action, columns, sides, outcome)
    assert inserted is not None
    outcome.inserted += 1
    outcome.rows.append(inserted)
    outcome.changes.append(Change("insert", merge.clauses.index(clause) + 1, None, inserted))


def new_row(
    action: Action, columns: Sequence[TableColumn], sides: Sides, outcome: Outcome
) -> Row | None:
    """The row that the action leaves; None: none. Values are checked as they are stored."""
    names = [column.name for column in columns]
    match action:
        case Delete():
            return None
        case UpdateAll() | InsertAll():
            values = {name: sides["s"][name] for name in names}
        case Update(assignments):
            values = {**sides["t"], **{name: e.evaluate(sides) for name, e in assignments}}
        case Insert(expressions, chosen):
            computed = [expression.evaluate(sides) for expression in expressions]
            given = dict(zip(chosen or names, computed, strict=True))
            values = {name: given.get(name) for name in names}
    stored = {column.name: _stored(values[column.name], column, outcome) for column in columns}
    return stored | _identity(action, names, sides)


def _identity(action: Action, names: Sequence[str], sides: Sides) -> Row:
    """What a target row has besides its columns, such as an id, which an UPDATE keeps."""
    if not isinstance(action, UpdateAll | Update):
        return {}
    return {name: value for name, value in sides["t"].items() if name not in names}


def _stored(value: Value, column: TableColumn, outcome: Outcome) -> Value:
    """Rule 8, as far as the grammar goes: ANSI casts at the table's door."""
    if value is None:
        if not column.nullable:
            outcome.errors.add(NOT_NULL)
        return None
    if column.type == "STRING":
        return _as_text(value)
    if isinstance(value, str):
        outcome.errors.add(NOT_STORABLE)  # the grammar knows no text that would parse
    elif column.type == "INT" and value not in INT_RANGE:
        outcome.errors.add(NOT_STORABLE)
    return value


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def multiset(rows: Iterable[Mapping[str, Value]], columns: Sequence[TableColumn]) -> list[str]:
    """Rows in a form that compares without regard to their order."""
    return sorted(repr([row[column.name] for column in columns]) for row in rows)
