"""A driver that dies, and storage that fails, at every step from the guard to the stored result.

A run takes the faults of a fifth of the steps of half of the works, others with
``MERGE_TESTS_TURN=1``; `make test-faults` takes them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.drivers import Drivers
from tests.faults.matrix import TABLE, Matrix, print_survived
from tests.judge.judge import read_with_java
from tests.judge.toolchain import JudgeMissingError, prepare
from tests.support.turns import has_turn

_PARTS = 5
_LEAST_FAULTS = 12


def _read(warehouse: Path) -> list[dict[str, Any]]:
    return list(read_with_java(warehouse, TABLE))


@pytest.fixture(scope="session")
def java() -> Callable[[Path], list[dict[str, Any]]] | None:
    """Paimon's own reader; None where it is missing, which tests/judge reports."""
    try:
        prepare()
    except JudgeMissingError:
        return None
    return _read


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    "work",
    [
        "merge",
        "merge with vectors beside others",
        "appended records beside others",
        "rewritten sections",
        # It publishes like "merge beside others"; only its sink is another.
        pytest.param("files of columns beside others", marks=pytest.mark.extended),
    ],
)
def test_faults_at_every_step(
    work: str,
    drivers: Drivers,
    tmp_path: Path,
    java: Callable[[Path], list[dict[str, Any]]] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    matrix = Matrix(drivers, tmp_path, java)
    faults = list(matrix.faults(work))
    places = {part for fault in faults for part in re.split("[ /]", fault.where)}
    assert {"consumer", "bucket-0", "manifest", "snapshot", "_operations"} <= places
    chosen = [each for each in faults if has_turn(each.step, _PARTS)]
    assert len(chosen) >= _LEAST_FAULTS
    assert 2 * sum(fault.kills for fault in chosen) >= len(chosen)

    survived = [(fault, *matrix.run(fault)) for fault in chosen]

    outcomes = {(state, then) for _, state, then in survived}
    assert outcomes == {("old", "applied"), ("new", "found")}
    with capsys.disabled():
        print_survived(survived)
