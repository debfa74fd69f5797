"""Random statements on tables that track rows: rows keep their ids, which Paimon's Java reads."""

from __future__ import annotations

import pytest

from tests.judge.required import require_java
from tests.property.paimon_tables import Warehouse
from tests.property.runner import Runner

SEEDS = range(30_000, 30_030)


@pytest.fixture(scope="module")
def tracking_runner(spark, tmp_path_factory) -> Runner:
    require_java()
    folder = tmp_path_factory.mktemp("row-ids") / "warehouse"
    folder.mkdir()
    return Runner(spark, Warehouse(folder), tracks_rows=True)


@pytest.mark.slow
@pytest.mark.by_turns(10)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_keep_their_ids(tracking_runner: Runner, seed: int) -> None:
    tracking_runner.run_seed(seed)
