"""A compaction that dies, and storage that fails, at every step from the guard to the result.

A run takes the faults of a part of the steps, another one with ``MERGE_TESTS_TURN``; `make
test-faults COMPACT=1` takes them all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.compaction_matrix import CompactionMatrix
from tests.faults.drivers import Drivers
from tests.faults.matrix import print_survived
from tests.support.turns import has_turn

_PARTS = 40


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    "work", ["compaction with vectors beside others", "compaction of sections"]
)
def test_faults_at_every_step_of_a_compaction(
    work: str, drivers: Drivers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = CompactionMatrix(drivers, tmp_path)
    faults = list(matrix.faults(work))
    places = {part for fault in faults for part in re.split("[ /]", fault.where)}
    assert {"consumer", "bucket-0", "manifest", "snapshot", "_operations"} <= places
    chosen = [each for each in faults if has_turn(each.step, _PARTS)]

    survived = [(fault, *matrix.run(fault)) for fault in chosen]

    assert survived
    with capsys.disabled():
        print_survived(survived)
