"""The oracle on cases computed by hand, rule by rule."""

from __future__ import annotations

import pytest

from tests.oracle.expressions import (
    Arithmetic,
    Column,
    Compare,
    Constant,
    Expression,
    Row,
    Value,
)
from tests.oracle.merge import (
    MULTIPLE_MATCHES,
    NOT_NULL,
    NOT_STORABLE,
    Action,
    Clause,
    Delete,
    Insert,
    InsertAll,
    Merge,
    Outcome,
    TableColumn,
    Update,
    UpdateAll,
    apply,
)

COLUMNS = (TableColumn("id", "INT"), TableColumn("v", "INT"))
ID = Compare("=", Column("t", "id"), Column("s", "id"))
NULL_SAFE_ID = Compare("<=>", Column("t", "id"), Column("s", "id"))
NEVER = Constant(value=False, type="boolean")
UNKNOWN = Constant(None, "boolean")


def number(value: Value) -> Constant:
    return Constant(value, "int")


def matched(action: Action, condition: Expression | None = None) -> Clause:
    return Clause("matched", action, condition)


def not_matched(action: Action, condition: Expression | None = None) -> Clause:
    return Clause("not_matched", action, condition)


def by_source(action: Action, condition: Expression | None = None) -> Clause:
    return Clause("not_matched_by_source", action, condition)


def set_v(value: Value) -> Update:
    return Update((("v", number(value)),))


def rows(*pairs: tuple[Value, Value]) -> list[Row]:
    return [{"id": key, "v": value} for key, value in pairs]


def run(
    target: list[Row],
    source: list[Row],
    *clauses: Clause,
    on: Expression = ID,
    mode: str = "effective",
) -> Outcome:
    return apply(Merge(on, clauses, mode), COLUMNS, target, source)


def pairs(outcome: Outcome) -> list[tuple[Value, Value]]:
    return sorted(((row["id"], row["v"]) for row in outcome.rows), key=repr)


def counts(outcome: Outcome) -> tuple[int, int, int]:
    return outcome.inserted, outcome.updated, outcome.deleted


SOURCE_V = Column("s", "v")


def test_the_first_clause_that_is_true_applies() -> None:
    outcome = run(
        rows((1, 10), (2, 20), (3, 30)),
        rows((1, 1), (2, 2), (3, 3)),
        matched(set_v(100), Compare(">", SOURCE_V, number(2))),
        matched(Delete(), Compare(">", SOURCE_V, number(1))),
        matched(set_v(-1)),
    )
    assert pairs(outcome) == [(1, -1), (3, 100)]
    assert (counts(outcome), outcome.matched) == ((0, 2, 1), 3)


def test_a_condition_that_is_null_does_not_apply() -> None:
    outcome = run(
        rows((1, 10), (2, None)),
        rows((1, None), (3, None)),
        matched(set_v(5), Compare("=", SOURCE_V, number(1))),
        not_matched(InsertAll(), UNKNOWN),
        by_source(Delete(), Compare("=", Column("t", "v"), number(1))),
    )
    assert pairs(outcome) == [(1, 10), (2, None)]
    assert counts(outcome) == (0, 0, 0)
    assert not outcome.changed


def test_null_keys_never_match() -> None:
    clauses = (matched(Delete()), not_matched(InsertAll()), by_source(set_v(0)))
    outcome = run(rows((None, 10)), rows((None, 1)), *clauses)
    assert pairs(outcome) == [(None, 0), (None, 1)]
    assert (counts(outcome), outcome.matched) == ((1, 1, 0), 0)
    opted_in = run(rows((None, 10)), rows((None, 1)), *clauses, on=NULL_SAFE_ID)
    assert pairs(opted_in) == []
    assert (counts(opted_in), opted_in.matched) == ((0, 0, 1), 1)


def test_two_source_rows_may_match_when_one_takes_effect() -> None:
    target, source = rows((1, 10)), rows((1, 1), (1, 2))
    clause = matched(set_v(7), Compare("=", SOURCE_V, number(2)))
    outcome = run(target, source, clause)
    assert pairs(outcome) == [(1, 7)]
    assert (counts(outcome), outcome.matched, outcome.errors) == ((0, 1, 0), 2, set())
    strict = run(target, source, clause, mode="strict")
    assert (pairs(strict), strict.errors) == ([(1, 10)], {MULTIPLE_MATCHES})


def test_two_source_rows_that_take_effect_are_an_error() -> None:
    outcome = run(rows((1, 10), (2, 20)), rows((1, 1), (1, 2), (2, 5)), matched(UpdateAll()))
    assert (pairs(outcome), outcome.errors) == ([(1, 10), (2, 20)], {MULTIPLE_MATCHES})


def test_they_are_an_error_by_way_of_two_clauses_too() -> None:
    outcome = run(
        rows((1, 10)),
        rows((1, 1), (1, 2)),
        matched(set_v(7), Compare("=", SOURCE_V, number(1))),
        matched(Delete(), Compare("=", SOURCE_V, number(2))),
    )
    assert outcome.errors == {MULTIPLE_MATCHES}


@pytest.mark.parametrize("mode", ["effective", "strict"])
def test_a_sole_unconditional_delete_may_meet_many(mode: str) -> None:
    outcome = run(
        rows((1, 10), (2, 20)),
        rows((1, 1), (1, 2), (3, 3)),
        matched(Delete()),
        not_matched(InsertAll()),
        by_source(set_v(0)),
        mode=mode,
    )
    assert pairs(outcome) == [(2, 0), (3, 3)]
    assert (counts(outcome), outcome.matched, outcome.errors) == ((1, 1, 1), 2, set())


@pytest.mark.parametrize(
    "clauses",
    [
        (matched(Delete(), Compare(">", SOURCE_V, number(0))),),
        (matched(set_v(1), Compare("<", SOURCE_V, number(0))), matched(Delete())),
    ],
    ids=["a condition", "another clause"],
)
def test_any_other_delete_may_not(clauses: tuple[Clause, ...]) -> None:
    assert run(rows((1, 10)), rows((1, 1), (1, 2)), *clauses).errors == {MULTIPLE_MATCHES}


@pytest.mark.parametrize("mode", ["effective", "strict"])
def test_a_row_without_a_matched_clause_is_carried_once(mode: str) -> None:
    outcome = run(
        rows((1, 10), (2, 20)), rows((1, 1), (1, 2), (1, 3)), by_source(Delete()), mode=mode
    )
    assert pairs(outcome) == [(1, 10)]
    assert (counts(outcome), outcome.matched, outcome.errors) == ((0, 0, 1), 3, set())


def test_a_row_that_many_match_without_effect_is_carried_once() -> None:
    outcome = run(
        rows((1, 10)), rows((1, 1), (1, 2)), matched(Delete(), UNKNOWN), by_source(Delete())
    )
    assert (pairs(outcome), counts(outcome)) == ([(1, 10)], (0, 0, 0))


def test_equal_target_rows_are_rows_of_their_own() -> None:
    outcome = run(rows((1, 10), (1, 10), (1, 10)), rows((1, 3)), matched(UpdateAll()))
    assert pairs(outcome) == [(1, 3), (1, 3), (1, 3)]
    assert (counts(outcome), outcome.matched) == ((0, 3, 0), 3)


def test_by_source_clauses_are_tried_in_order_too() -> None:
    outcome = run(
        rows((1, 10), (2, 20), (3, 30)),
        rows((1, 1)),
        by_source(set_v(0), Compare("=", Column("t", "v"), number(20))),
        by_source(Delete()),
    )
    assert (pairs(outcome), counts(outcome)) == ([(1, 10), (2, 0)], (0, 1, 1))


def test_every_unmatched_source_row_is_inserted() -> None:
    outcome = run(
        rows((1, 10)),
        rows((2, 1), (2, 1), (None, 4), (1, 9)),
        not_matched(Insert((number(7), Column("s", "id"))), Compare("=", SOURCE_V, number(4))),
        not_matched(Insert((SOURCE_V,), ("v",))),
    )
    # By position: id = 7, v = s.id, which is NULL; with a list: what is left out is NULL.
    assert pairs(outcome) == [(1, 10), (7, None), (None, 1), (None, 1)]
    assert counts(outcome) == (3, 0, 0)


def test_empty_sides() -> None:
    clauses = (matched(Delete()), not_matched(InsertAll()), by_source(Delete()))
    assert pairs(run([], rows((1, 1)), *clauses)) == [(1, 1)]
    assert pairs(run(rows((1, 1)), [], *clauses)) == []
    assert not run([], [], *clauses).changed


def test_nothing_matches_when_on_is_false() -> None:
    outcome = run(
        rows((1, 10)), rows((1, 1)), not_matched(InsertAll()), by_source(Delete()), on=NEVER
    )
    assert (pairs(outcome), counts(outcome)) == ([(1, 1)], (1, 0, 1))


def test_all_assignments_see_the_old_row() -> None:
    swap = Update((("id", Column("t", "v")), ("v", Arithmetic("+", Column("t", "id"), SOURCE_V))))
    assert pairs(run(rows((1, 10)), rows((1, 5)), matched(swap))) == [(10, 6)]


def test_null_into_a_column_that_is_not_null() -> None:
    columns = (COLUMNS[0], TableColumn("v", "INT", nullable=False))
    for clause in (matched(UpdateAll()), matched(set_v(None))):
        outcome = apply(Merge(ID, (clause,)), columns, rows((1, 10)), rows((1, None)))
        assert (outcome.errors, outcome.rows) == ({NOT_NULL}, rows((1, 10)))
    elsewhere = apply(Merge(ID, (matched(UpdateAll()),)), columns, rows((1, 10)), rows((2, None)))
    assert not elsewhere.errors


def test_several_errors_are_all_known() -> None:
    columns = (COLUMNS[0], TableColumn("v", "INT", nullable=False))
    source = rows((1, None), (1, 2), (2, 3_000_000_000))
    merge = Merge(ID, (matched(UpdateAll()), not_matched(InsertAll())))
    outcome = apply(merge, columns, rows((1, 10)), source)
    assert outcome.errors == {NOT_NULL, MULTIPLE_MATCHES, NOT_STORABLE}


def test_values_are_stored_by_cast() -> None:
    columns = (TableColumn("id", "INT"), TableColumn("v", "STRING"))
    for value, stored in ((12, "12"), (True, "true"), (None, None)):
        kind = "boolean" if value is True else "int"
        update = Update((("v", Constant(value, kind)),))
        outcome = apply(Merge(ID, (matched(update),)), columns, rows((1, "x")), rows((1, "y")))
        assert outcome.rows == rows((1, stored))


def test_big_numbers_fit_bigint_only() -> None:
    for kind, errors in (("INT", {NOT_STORABLE}), ("BIGINT", set())):
        columns = (COLUMNS[0], TableColumn("v", kind))
        outcome = apply(Merge(ID, (matched(UpdateAll()),)), columns, rows((1, 1)), rows((1, 2**31)))
        assert outcome.errors == errors
