"""Every counterexample that random statements found, as small as it gets, under a name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from tests.oracle.expressions import Column, Compare, Constant, Expression, Not, Row
from tests.oracle.merge import Clause, InsertAll, Merge, TableColumn, Update, UpdateAll
from tests.oracle.statements import DeleteFrom, Statement, UpdateTable
from tests.property.cases import Chain, Step, Table
from tests.property.runner import Runner
from tests.support.table_kinds import BUILT, FOLDER

ID = TableColumn("id", "INT")
SAME_ID = Compare("=", Column("t", "id"), Column("s", "id"))


def chain(
    columns: Sequence[TableColumn],
    target: Sequence[Sequence],
    source: Sequence[Sequence],
    *statements: Statement,
    partition: str | None = None,
) -> Chain:
    """Statements on one commit; rows as lists of values, row groups of three rows."""
    table = Table(tuple(columns), partition, (_rows(columns, target),), 3, statistics=True)
    sources = tuple(TableColumn(column.name, column.type) for column in columns)
    rows = _rows(columns, source)
    return Chain(table, tuple(Step(sources, rows, statement) for statement in statements))


def merge(*clauses: Clause, on: Expression = SAME_ID) -> Merge:
    """A MERGE on equal ids."""
    return Merge(on, clauses)


def _rows(columns: Sequence[TableColumn], rows: Sequence[Sequence]) -> tuple[Row, ...]:
    names = [column.name for column in columns]
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def test_booleans_of_later_row_groups_are_replaced_in_their_own_rows(runner: Runner) -> None:
    """pyarrow's replace_with_mask takes the wrong bits of a boolean array that is a slice."""
    flags = [True, False, None, True, True, False, None, False, True, False]
    target = [[key, flag] for key, flag in enumerate(flags)]
    source = [[key, flags[key - 1]] for key in (1, 4, 5, 7, 8)]
    runner.run(
        chain(
            [ID, TableColumn("flag", "BOOLEAN")],
            target,
            source,
            merge(Clause("matched", UpdateAll())),
        )
    )


@pytest.mark.parametrize("attempt", range(3))
def test_tasks_that_outlive_a_failed_statement_leave_no_files(runner: Runner, attempt: int) -> None:
    """Spark reports a failed stage while its other tasks still write."""
    del attempt  # a race: more than one try
    partitions = ["a", "b", "c", "d", "e", "f"]
    target = [[key, name] for key in range(10) for name in partitions]
    twice = [[3, "a"], [3, "b"]]
    moved = Update((("id", Constant(7, "int")),))
    new_rows = [[key, name] for key in range(20, 30) for name in partitions]
    runner.run(
        chain(
            [ID, TableColumn("p", "STRING")],
            target,
            twice + new_rows,
            merge(Clause("matched", moved), Clause("not_matched", InsertAll())),
            partition="p",
        )
    )


def test_a_condition_without_columns_selects_all_rows_or_none(runner: Runner) -> None:
    """A DELETE with a condition that is never true dropped every file."""
    never = [Constant(False, "boolean"), Constant(None, "boolean")]
    zero = (("v", Constant(0, "int")),)
    runner.run(
        chain(
            [ID, TableColumn("v", "INT")],
            [[1, 10], [2, 20], [3, 30], [4, None]],
            [],
            *map(DeleteFrom, never),
            *(UpdateTable(zero, where) for where in never),
            UpdateTable(zero, Not(never[0])),
            DeleteFrom(Not(never[1])),
            DeleteFrom(Not(never[0])),
        )
    )


def test_partitions_of_null_and_of_an_empty_text_in_one_table(runner: Runner) -> None:
    """Seed 30175: both lie in one folder, but a file of deletion vectors belongs to one of them."""
    columns = (ID, TableColumn("v", "INT"), TableColumn("p", "STRING"))
    commits = (
        _rows(columns, [[key, 1, None] for key in range(20)]),
        _rows(columns, [[key, 2, ""] for key in range(20, 40)]),
    )
    kind = next(each for each in BUILT if each.name == "bucketed-dv")
    table = Table(columns, "p", commits, 3, True, kind, 1.0)
    rows = _rows(columns, [[key, 7, "c"] for key in range(0, 40, 2)])
    runner.run(Chain(table, (Step(columns, rows, merge(Clause("matched", UpdateAll()))),)))


def test_rows_move_between_partitions_of_dates_in_the_folder_connector(runner: Runner) -> None:
    """Seed 898104044: the reports of its sinks had dates, which JSON has not."""
    columns = (ID, TableColumn("p", "DATE"))
    commits = (_rows(columns, [[1, date(2024, 2, 1)], [2, None]]),)
    table = Table(columns, "p", commits, 3, True, FOLDER, None)
    rows = _rows(columns, [[1, date(2024, 2, 2)], [2, date(2024, 2, 1)], [3, None]])
    clauses = (Clause("matched", UpdateAll()), Clause("not_matched", InsertAll()))
    runner.run(Chain(table, (Step(columns, rows, merge(*clauses)),)))
