"""A driver that dies, and storage and catalogs that fail, at every step of a commit to Iceberg.

A run takes one of the catalogs: the faults of an eighth of its steps, and of the request to commit;
`make test-faults ICEBERG=1` takes them all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.drivers import Drivers
from tests.faults.iceberg import WORKS, IcebergMatrix, server_of
from tests.faults.matrix import print_survived
from tests.support.turns import has_turn

_PARTS = 8


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("catalog", ["rest", "sql", "glue"])
def test_faults_at_every_step(
    catalog: str,
    drivers: Drivers,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = server_of(request, catalog)
    matrix = IcebergMatrix.on(drivers, tmp_path, server)
    works = ("merge on read beside others", "merge on read of version 3")
    works = works if server else ("merge", "merge of version 3")
    work = works[0] if has_turn(0, 2) else works[1]
    assert work in WORKS
    faults = list(matrix.faults(work))
    places = {part for fault in faults for part in re.split("[ /]", fault.where)}
    assert {"_operations", "data", "metadata", "catalog"} <= places
    asked = max(fault.step for fault in faults if fault.where.endswith("catalog"))
    chosen = [each for each in faults if has_turn(each.step, _PARTS) or each.step == asked]

    survived = [(fault, *matrix.run(fault)) for fault in chosen]

    outcomes = {(state, then) for _, state, then in survived}
    assert outcomes == {("old", "applied"), ("new", "found")}
    with capsys.disabled():
        print_survived(survived)


def test_faults_of_replaced_partitions(drivers: Drivers, tmp_path: Path) -> None:
    """A file of an older spec, of which some rows go."""
    matrix = IcebergMatrix.on(drivers, tmp_path, None)
    work = "clear" if has_turn(0, 2) else "clear on read"
    faults = list(matrix.faults(work))
    assert any("data" in fault.where for fault in faults)

    survived = [matrix.run(each) for each in faults if has_turn(each.step, _PARTS)]

    assert {*survived} == {("old", "applied"), ("new", "found")}
