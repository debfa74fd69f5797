"""Random statements on tables that track rows: rows keep their ids, which Paimon's Java reads.

Tables with data evolution and deletion vectors, which Java 1.4 does not know, pypaimon reads.
"""

from __future__ import annotations

import pytest

from tests.judge.required import require_java
from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner
from tests.support.table_kinds import EVOLVING, TRACKED

SEEDS = range(30_000, 30_030)


@pytest.fixture(scope="module")
def tracking_runner(spark, tmp_path_factory) -> Runner:
    require_java()
    folder = tmp_path_factory.mktemp("row-ids") / "warehouse"
    folder.mkdir()
    return Runner(spark, Warehouse(folder), kinds=TRACKED)


@pytest.fixture(scope="module")
def evolving_runner(spark, tmp_path_factory) -> Runner:
    require_java()
    folder = tmp_path_factory.mktemp("columns") / "warehouse"
    folder.mkdir()
    return Runner(spark, Warehouse(folder), kinds=EVOLVING)


@pytest.mark.slow
@pytest.mark.by_turns(10)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_keep_their_ids(tracking_runner: Runner, seed: int) -> None:
    tracking_runner.run_seed(seed)


@pytest.mark.slow
@pytest.mark.by_turns(10)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_keep_their_ids_under_data_evolution(evolving_runner: Runner, seed: int) -> None:
    evolving_runner.run_seed(seed)
