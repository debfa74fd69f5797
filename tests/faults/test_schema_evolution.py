"""Statements that add a column: killed at each step of schema and snapshot, and racing.

A run takes half of the steps, the other half with ``MERGE_TESTS_TURN=1``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.faults.drivers import Drivers
from tests.faults.looking import look
from tests.faults.matrix import TABLE, Matrix, known
from tests.faults.merges import OLD, Work, run
from tests.judge.judge import read_with_java
from tests.support.turns import EVERYTHING, has_turn

WORK = "merge with a new column"
_RACES = 25 if EVERYTHING else 12


@pytest.fixture
def java() -> Callable[[Path], list[dict[str, object]]]:
    return lambda warehouse: list(read_with_java(warehouse, TABLE))


def columns(warehouse: Path) -> dict[str, list[str]]:
    """The names of the columns in each schema."""
    folder = warehouse / "shop.db" / "orders" / "schema"
    return {
        path.name: [field["name"] for field in json.loads(path.read_text())["fields"]]
        for path in sorted(folder.glob("schema-*"))
    }


def test_faults_at_every_step_of_schema_and_snapshot(
    drivers: Drivers, tmp_path: Path, java: Callable[[Path], list[dict[str, object]]]
) -> None:
    matrix = Matrix(drivers, tmp_path, java)
    faults = list(dropwhile(lambda each: "/schema" not in each.where, matrix.faults(WORK)))
    assert {"schema", "manifest", "snapshot"} <= {
        part for each in faults for part in each.where.split("/")
    }
    outcomes = set()
    for fault in (each for each in faults if has_turn(each.step, 2)):
        outcomes.add(matrix.run(fault))
        assert columns(tmp_path / "warehouse") == {
            "schema-0": ["id", "v", "p"],
            "schema-1": ["id", "v", "p", "more"],
        }
    assert outcomes == {("old", "applied"), ("new", "found")}


@pytest.mark.parametrize("other", ["b", "a"], ids=["other columns", "one column"])
def test_two_that_add_a_column_at_the_same_time(
    drivers: Drivers, fresh: Callable[[], Path], other: str
) -> None:
    """No column and no row is lost; one of two schemas wins, and the other statement runs again."""
    for number in range(_RACES):
        warehouse = fresh()
        works = [
            Work(f"{name}-{number}", 100 + index, changes=False, adds=column)
            for index, (name, column) in enumerate((("x", "a"), ("y", other)))
        ]

        answers = [each["value"] for each in drivers.do("race", warehouse, *works)]

        if other == "b":
            assert sorted(answers) == ["COMMIT_CONFLICT", "committed"]
        for work in works:
            assert run(warehouse, work, 2).status == "committed"
        after = look(warehouse, TABLE)
        new = [{"id": w.new_id, "v": w.operation_id, "p": 2, w.adds: "new"} for w in works]
        assert known(after.rows) == known([*OLD, *new])
        *_, newest = columns(warehouse).values()
        assert set(newest) == {"id", "v", "p", "a", other}
        assert sorted(after.made_by[1:]) == sorted(work.operation_id for work in works)
        assert after.guards == frozenset()
