"""A compaction of an Iceberg table, or a rewrite of deletes or manifests, that dies at every step.

Or its storage or catalog fails there. A run takes one of the catalogs and a part of the steps, with
the request to commit; `make test-faults COMPACT=1 ICEBERG=1` takes them all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.drivers import Drivers
from tests.faults.iceberg import server_of
from tests.faults.iceberg_compactions import WORKS, IcebergCompactionMatrix
from tests.faults.matrix import print_survived
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

_PARTS = 40


@pytest.fixture(params=["rest", "sql", "glue"])
def matrix(
    request: pytest.FixtureRequest, drivers: Drivers, tmp_path: Path
) -> IcebergCompactionMatrix:
    """Tables of a REST catalog, of one in SQLite, and of Glue."""
    return IcebergCompactionMatrix.on(drivers, tmp_path, server_of(request, request.param))


@pytest.mark.by_turns(12)
@pytest.mark.parametrize("work", WORKS)
def test_faults_at_every_step_of_a_compaction(
    matrix: IcebergCompactionMatrix, work: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = list(matrix.faults(work))
    places = {part for fault in faults for part in re.split("[ /]", fault.where)}
    expected = {"catalog", "metadata", "_operations"}
    if matrix.works[work].snapshots > 1:
        expected.add("data")
    assert expected <= places
    asks = [each for each in faults if "merge.asked" in each.where]
    assert {each.kind for each in asks} >= {"killed before", "killed after", "answer lost after"}
    first = [each for each in asks if each.step == asks[0].step]
    others = [each for each in faults if each not in first and has_turn(each.step, _PARTS)]

    survived = [(fault, *matrix.run(fault)) for fault in [*first, *others]]

    with capsys.disabled():
        print_survived(survived)
